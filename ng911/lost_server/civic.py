# SPDX-License-Identifier: GPL-2.0-or-later
"""Civic addresses (RFC 5139) against rows of a table. An empty column of a row matches every address."""

# In the order from large to small, in which an address is validated.
COLUMNS = ("country", "A1", "A2", "A3", "A4", "A5", "A6", "PC", "PRD", "RD", "STS", "POD")
HOUSE = "HNO"
ORDER = (*COLUMNS, HOUSE)


def same(a, b):
    return a.casefold() == b.casefold()


def house_number(text):
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def has(row, name):
    """Whether this row says anything about this element. A row is (mapping id, values by column, first house, last house)."""
    return row[2] is not None if name == HOUSE else bool(row[1].get(name))


def agrees(row, name, value):
    if name == HOUSE:
        number = house_number(value)
        return number is not None and row[2] <= number <= row[3]
    return same(row[1][name], value)


def specific(row):
    return sum(1 for name in ORDER if has(row, name))


def best(rows, address):
    """The id of the mapping whose row says most about this address and contradicts nothing, or None."""
    found = [r for r in rows if all(name in address and agrees(r, name, address[name]) for name in ORDER if has(r, name))]
    return min(found, key=lambda r: (-specific(r), r[0]))[0] if found else None


def validate(rows, address):
    """(valid, invalid, unchecked): names of the address's elements. Elements after the first invalid one are not checked, because
    nothing is known about an address outside of the table."""
    valid, invalid, unchecked = [], [], []
    for name in ORDER:
        if name not in address:
            continue
        about = [r for r in rows if has(r, name)]
        fit = [r for r in about if agrees(r, name, address[name])]
        if invalid or not about:
            unchecked.append(name)
        elif fit:
            valid.append(name)
            rows = fit
        else:
            invalid.append(name)
    unchecked += [name for name in address if name not in ORDER]
    return valid, invalid, unchecked
