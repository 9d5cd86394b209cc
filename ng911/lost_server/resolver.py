# SPDX-License-Identifier: GPL-2.0-or-later
"""One request in, one response out. The clock is a parameter."""
import time
from functools import lru_cache

from shapely import wkb

from . import civic, messages
from .messages import LostError
from .storage import StorageError

SERVICE_DEPTH = 8


@lru_cache(64)
def stamp(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def parents(service):
    """The service and the more general ones, which may replace it: sos.police.x, sos.police, sos."""
    yield service
    for _ in range(SERVICE_DEPTH):
        head, dot, _ = service.rpartition(".")
        if not dot or ":" not in head:
            return
        service = head
        yield service


def below(names, service):
    """Services one level below this one, or the top-level ones (RFC 5222 9)."""
    if service:
        return [n for n in names if n.startswith(service + ".") and "." not in n[len(service) + 1:]]
    tops = {n.partition(".")[0] if n.startswith("urn:") else n for n in names}
    return sorted(tops)


class Resolver:
    def __init__(self, reader, source, clock=time.time):
        """reader: called once for each request, gives the storage that answers it."""
        self.reader, self.source, self.clock = reader, source, clock
        self.parts = lru_cache(4096)(lambda m: messages.mapping_parts(m, source))
        self.counts = {}

    async def answer(self, body):
        """The response to a request, as octets. Every fault becomes an <errors> response."""
        try:
            request = messages.parse(body)
            if self.source in request.via:
                raise LostError("loop", "this server is in the path already")
            text = await self.KINDS[request.kind](self, request, self.reader())
            kind = request.kind
        except LostError as why:
            text, kind = messages.errors(self.source, why), why.kind
        except StorageError:
            text, kind = messages.errors(self.source, LostError("internalError", "the database does not answer")), "internalError"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return text.encode()

    def expires(self, mapping):
        return mapping.ttl if mapping.ttl.startswith("NO-") else stamp(int(self.clock()) + int(mapping.ttl))

    async def find_service(self, request, storage):
        location = messages.choose(request.locations)
        find = self.by_address if location.profile == "civic" else self.by_shape
        mapping, warnings, checked = await find(request, storage, location)
        boundary = messages.boundary_reference(mapping, self.source)
        if request.by_value and mapping.key:
            boundary = messages.boundary_value(wkb.loads(await storage.boundary(mapping.key)))
        start, middle, end = self.parts(mapping)
        return (f'{messages.HEAD}<findServiceResponse xmlns="{messages.LOST}">{start}{self.expires(mapping)}{middle}{boundary}{end}{checked}'
                f"{messages.tail(self.source, request, warnings, location)}</findServiceResponse>")

    async def by_shape(self, request, storage, location):
        shape = messages.geometry(location)

        async def look(service):
            return await storage.covering(service, shape)
        mapping, warnings = await self.search(request.service, storage, look)
        return mapping, warnings, ""

    async def by_address(self, request, storage, location):
        address = messages.address(location)
        rows_of = {}

        async def look(service):
            rows_of[service] = rows = await storage.civic(service)
            number = civic.best(rows, address)
            return await storage.mapping(number) if number is not None else None
        mapping, warnings = await self.search(request.service, storage, look)
        if not request.validate:
            return mapping, warnings, ""
        rows = rows_of.get(mapping.service) or await storage.civic(mapping.service)
        if not rows:
            return mapping, [*warnings, LostError("locationValidationUnavailable", "no addresses are known for this service")], ""
        return mapping, warnings, messages.validation(*civic.validate(rows, address))

    async def search(self, wanted, storage, look):
        """The mapping for a service: of the service itself or of a more general one, or a default mapping."""
        known = set(await storage.services())
        candidates = [s for s in parents(wanted) if s in known]
        if not candidates:
            raise LostError("serviceNotImplemented", "the service is not known here")
        for find, warning in ((look, None), (storage.default, LostError("defaultMappingReturned", "no boundary contains the location"))):
            for service in candidates:
                mapping = await find(service)
                if mapping:
                    warnings = [warning] if warning else []
                    if service != wanted:
                        warnings.append(LostError("serviceSubstitution", f"{service} replaces {wanted}"))
                    return mapping, warnings
        raise LostError("notFound", "no mapping for this location")

    async def list_services(self, request, storage):
        return self.service_list("listServicesResponse", request, await storage.services())

    async def list_by_location(self, request, storage):
        location = messages.choose(request.locations)
        if location.profile == "civic":
            address = messages.address(location)
            names = [s for s in await storage.services() if civic.best(await storage.civic(s), address) is not None]
        else:
            names = await storage.services(messages.geometry(location))
        return self.service_list("listServicesByLocationResponse", request, names, location)

    def service_list(self, kind, request, names, location=None):
        listed = messages.escape(" ".join(below(names, request.service)))
        return (f'{messages.HEAD}<{kind} xmlns="{messages.LOST}"><serviceList>{listed}</serviceList>'
                f"{messages.tail(self.source, request, [], location)}</{kind}>")

    async def boundary(self, request, storage):
        found = await storage.boundary(request.key)
        if not found:
            raise LostError("notFound", "no boundary has this key")
        return (f'{messages.HEAD}<getServiceBoundaryResponse xmlns="{messages.LOST}">{messages.boundary_value(wkb.loads(found))}'
                f"{messages.tail(self.source, request, [])}</getServiceBoundaryResponse>")

    KINDS = {"findService": find_service, "listServices": list_services, "listServicesByLocation": list_by_location, "getServiceBoundary": boundary}
