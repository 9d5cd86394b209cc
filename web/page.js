// SPDX-License-Identifier: GPL-2.0-or-later
// The page: receives the last ten minutes at first, then a snapshot each second over a WebSocket, and shows them. Strings
// from outside are shown as text (textContent), never as markup. Rates are differences between snapshots.
// The fragment of the address says what is looked at: #call=CALL-ID, show=, sort=, filter=.
"use strict";

const $ = (id) => document.getElementById(id);
const SPAN_MS = 600000; // that charts of time show
const STALE_MS = 5000; // without a snapshot: the daemon or the way to it has stopped
let socket, mayEnd = false, last = null, opened = "", samples = [], sampleMs = 2000, retry = 1000, timer = 0, endSent = "";
let heard = 0; // performance.now() of the last snapshot, 0 = none on this connection
let cursors = [""], nextCursor = "", endedSkip = 0, endedMore = false;
let followed = false; // the fragment, which waits for the token

// --- Small helpers ------------------------------------------------------------------------------------------------

function element(name, text, className) {
	const e = document.createElement(name);
	if (text !== undefined) e.textContent = text;
	if (className) e.className = className;
	return e;
}

function svg(name, attributes) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const k in attributes) e.setAttribute(k, attributes[k]);
	return e;
}

function number(n) {
	if (!isFinite(n)) return "–";
	if (n >= 1e6) return (n / 1e6).toFixed(n >= 1e7 ? 1 : 2) + " M";
	if (n >= 1e4) return (n / 1e3).toFixed(1) + " k";
	return n >= 100 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
}

function duration(s) {
	s = Math.max(0, Math.floor(s));
	const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
	if (h >= 48) return Math.floor(h / 24) + " d";
	return h ? `${h}:${String(m).padStart(2, "0")}:${String(s % 60).padStart(2, "0")}` : `${m}:${String(s % 60).padStart(2, "0")}`;
}

function time(ns) {
	return ns >= 1e9 ? (ns / 1e9).toFixed(1) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(1) + " ms" : ns >= 1e3 ? Math.round(ns / 1e3) + " µs" : Math.round(ns) + " ns";
}

function bytes(n) {
	return (n >= 1e9 ? (n / 1e9).toFixed(1) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(1) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : Math.round(n) + " B");
}

// A row whose cells carry the names of their columns, for narrow screens.
function row(names, cells) {
	const tr = element("tr");
	cells.forEach((c, i) => {
		const td = element("td");
		td.dataset.name = names[i][0];
		if (names[i][1]) td.className = "num";
		if (c instanceof Node) td.append(c);
		else td.textContent = c;
		tr.append(td);
	});
	return tr;
}

// Per second since the last snapshot; 0 for what began again.
function rate(now, before, seconds) {
	return before === undefined || now < before || seconds <= 0 ? 0 : (now - before) / seconds;
}

function sum(list, key) {
	return list.reduce((n, x) => n + x[key], 0);
}

// --- Charts -------------------------------------------------------------------------------------------------------

// The first of 1, 2, 5, 10, 20, ... that is not below n.
function nice(n) {
	const ten = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
	return [1, 2, 5, 10].map((f) => f * ten).find((x) => x >= n);
}

function axis(name, marks) {
	const a = $(name);
	if (a.textContent !== marks.join("")) a.replaceChildren(...marks.map((m) => element("span", m)));
}

// Lines over the last ten minutes; a pause of the daemon is a gap. lines: [what a sample says (null: nothing), class].
function drawLines(name, lines, now, least, label) {
	const w = 400, h = 120, chart = $(name);
	const shown = lines.map(([value, className]) => [samples.map((s) => [s[0], value(s)]).filter((p) => p[1] !== null), className]);
	const top = nice(Math.max(least, ...shown.flatMap((l) => l[0].map((p) => p[1]))));
	const parts = [svg("line", {x1: 0, x2: w, y1: 1, y2: 1, class: "grid-line"}), svg("line", {x1: 0, x2: w, y1: h / 2, y2: h / 2, class: "grid-line"}),
		svg("line", {x1: 0, x2: w, y1: h - 1, y2: h - 1, class: "grid-line"})];
	for (const [points, className] of shown) {
		let run = [];
		const draw = () => {
			if (run.length) parts.push(svg("polyline", {points: run.join(" "), class: className}));
			run = [];
		};
		points.forEach(([t, v], i) => {
			if (i && t - points[i - 1][0] > 2.5 * sampleMs) draw();
			run.push(`${(w - (now - t) / SPAN_MS * w).toFixed(1)},${(h - 1 - v / top * (h - 2)).toFixed(1)}`);
		});
		draw();
	}
	chart.replaceChildren(...parts);
	axis(name + "-y", [label(top), label(top / 2), label(0)]);
	axis(name + "-axis", ["10 min ago", "5 min ago", "now"]);
}

function drawCharts(s) {
	const lates = (at) => (x) => x[6] ? x[at] : null;
	drawLines("rate", [[(x) => x[2], "in"], [(x) => x[4] || null, "bad"]], s.now, 10, (n) => number(n) + "/s");
	drawLines("count", [[(x) => x[1], "in"]], s.now, 10, number);
	drawLines("late", [[lates(6), "in"], [lates(5), "soft"]], s.now, 100, (n) => time(n * 1000));
	drawBars("delay", s.delay, delayLabel(s.delay.first));
	drawBars("batch", s.batch, batchLabel(s.batch.first));
}

function drawBars(name, now, label) {
	const counts = now.counts, all = counts.reduce((a, n) => a + n, 0);
	const top = nice(100 * Math.max(0, ...counts) / Math.max(1, all)), w = 400 / counts.length;
	const chart = $(name);
	if (chart.children.length !== counts.length) {
		chart.replaceChildren(...counts.map((_, i) => svg("rect", {x: i * w + 1, width: w - 2, y: 120, height: 0})));
		chart.querySelectorAll("rect").forEach((r) => r.append(svg("title", {})));
	}
	counts.forEach((n, i) => {
		const bar = chart.children[i], height = n ? Math.max(2, 100 * n / all / top * 119) : 0;
		bar.setAttribute("y", 120 - height);
		bar.setAttribute("height", height);
		bar.firstChild.textContent = `${label(i, counts.length)}: ${n}`;
	});
	axis(name + "-y", [top + " %", top / 2 + " %", "0 %"]);
	axis(name + "-axis", [0, Math.floor(counts.length / 2), counts.length - 1].map((i) => label(i, counts.length)));
}

const delayLabel = (first) => (i, n) => i === n - 1 ? "over " + time(2 ** (first + i - 1)) : "below " + time(2 ** (first + i));
const batchLabel = (first) => (i, n) => {
	if (i === n - 1) return "from " + 2 ** (first + i - 1);
	const to = 2 ** (first + i) - 1, from = i ? 2 ** (first + i - 1) : 1;
	return from === to ? String(to) : `${from} to ${to}`;
};

// --- What is shown ------------------------------------------------------------------------------------------------

function tile(label, value, bad) {
	const t = element("div", undefined, bad ? "tile bad" : "tile");
	t.append(element("b", value), element("span", label));
	return t;
}

function showNow(s, before, seconds) {
	const x = s.xcipher, w = s.workers, wb = before ? before.workers : [];
	const packets = rate(sum(w, "packets in"), wb.length ? sum(wb, "packets in") : undefined, seconds);
	const out = rate(sum(w, "packets out"), wb.length ? sum(wb, "packets out") : undefined, seconds);
	const drops = rate(sum(w, "drops"), wb.length ? sum(wb, "drops") : undefined, seconds);
	const late = x["latency now"], newest = samples.length ? samples[samples.length - 1] : null, unrelayed = newest ? newest[7] : 0;
	$("tiles").replaceChildren(
		tile("calls", number(s.sessions.current)), tile("packets/s in", number(packets)), tile("packets/s out", number(out)),
		tile("dropped/s", number(drops), drops > packets / 100 && drops > 0), tile("not relayed/s", bytes(unrelayed)),
		tile("delay, median", late.count ? time(late.p50_us * 1000) : "–"), tile("delay, 99 %", late.count ? time(late.p99_us * 1000) : "–"),
		tile("ports free", number(x["ports free"])));
	$("about").textContent = `${x.version}, ${x.engine} on ${x.device}, ${x.steering}, up ${duration(x.uptime)}`;
	const notices = [];
	if (x.limits && x.limits.reached !== "none") notices.push(["bad", `New calls are refused: limit on ${x.limits.reached}.`]);
	for (const d of x.devices) if (d.state !== "ok") notices.push(["bad", `Device lost: ${d.name}. Its share goes to the others.`]);
	if (endSent) notices.push(["", endSent]);
	const text = notices.map((n) => n[1]).join("\n");
	if ($("notices").dataset.text !== text) {
		$("notices").dataset.text = text;
		$("notices").replaceChildren(...notices.map((n) => element("p", n[1], n[0])));
	}
}

const WORKER = [["Worker"], ["In/s", 1], ["Out/s", 1], ["Mean batch", 1], ["Per packet", 1], ["Dropped", 1]];
const DEVICE = [["Device"], ["State"], ["Packets/s", 1], ["Per packet", 1], ["Failed", 1]];

function showMore(s, before, seconds) {
	$("workers").replaceChildren(...s.workers.map((w, i) => {
		const b = before && before.workers[i] || {}, jobs = w.jobs - (b.jobs || 0), batches = w.batches - (b.batches || 0), ns = w["engine ns"] - (b["engine ns"] || 0);
		return row(WORKER, [String(i), number(rate(w["packets in"], b["packets in"], seconds)), number(rate(w["packets out"], b["packets out"], seconds)),
			batches > 0 ? number(jobs / batches) : "–", jobs > 0 ? time(ns / jobs) : "–", number(w.drops)]);
	}));
	const devices = s.xcipher.devices;
	$("devices").replaceChildren(...(devices.length ? devices.map((d, i) => {
		const b = before && before.xcipher.devices[i] || {};
		return row(DEVICE, [d.name, element("span", d.state, d.state === "ok" ? "tag" : "tag bad"), number(rate(d.jobs, b.jobs, seconds)),
			d.jobs ? time(d["ns per packet"]) : "–", number(d.errors)]);
	}) : [row([["Device"]], ["none: the serial engine does it all"])]));
	const pairs = (id, o, none) => {
		const list = Object.entries(o).filter((e) => e[1] > 0).sort((a, b) => b[1] - a[1]);
		$(id).replaceChildren(...(list.length ? list.map((e) => row([[""], ["", 1]], [e[0], number(e[1])])) : [row([[""]], [none])]));
	};
	pairs("suites", s.suites, "no media");
	pairs("drops", s.xcipher.drops, "none since start");
	$("drops").append(row([[""], ["", 1]], ["bytes not relayed", bytes(s.xcipher["bytes not relayed"])]));
}

const CALL = [["Call-ID"], ["Caller and callee"], ["Age", 1], ["State"], ["Suites"], ["Packets/s", 1], ["MOS", 1], ["Loss", 1], ["Dropped", 1]];
const ENDED = [["Call-ID"], ["Caller and callee"], ["Reason"], ["Lasted", 1], ["Ended", 1]];

function state(c, now) {
	const box = element("span");
	box.append(element("span", c.state, "tag"));
	if (c.emergency) box.append(element("span", "emergency", "tag bad"));
	for (const t of c.trouble) box.append(element("span", t, "tag bad"));
	const silent = c["last packet"] ? now / 1000 - c["last packet"] : 0;
	if (c.state === "up" && silent > 5) box.append(element("span", `silent ${duration(silent)}`, "tag bad"));
	return box;
}

function suites(c) {
	const box = element("span");
	for (const l of c.legs) {
		const name = l.suite || "–";
		box.append(element("span", name, name === "plain" ? "tag plain" : "tag"));
	}
	return box;
}

function parties(c) {
	return `${c.from || "?"} → ${c.to || "?"}`;
}

function callButton(id) {
	const b = element("button", id, "call");
	b.type = "button";
	b.dataset.call = id;
	return b;
}

// Replaces the rows of a table; the focus stays on its call.
function fill(body, rows) {
	const at = document.activeElement, focused = at && at.dataset && body.contains(at) ? at.dataset.call : undefined;
	body.replaceChildren(...rows);
	if (focused !== undefined)
		for (const b of body.querySelectorAll("button.call")) if (b.dataset.call === focused) b.focus({preventScroll: true});
}

function showCalls(s, before, seconds) {
	const old = new Map((before ? before.calls : []).map((c) => [c.id, c])), n = s.calls.length, filtered = $("filter").value || $("show").value;
	if (!n && s.matched && cursors.length > 1) { // the calls of this page have ended
		cursors.pop();
		look();
	}
	fill($("calls-rows"), s.calls.map((c) => {
		const b = old.get(c.id), packets = rate(sum(c.legs, "packets"), b ? sum(b.legs, "packets") : undefined, seconds);
		return row(CALL, [callButton(c.id), parties(c), duration(s.now / 1000 - c.created), state(c, s.now), suites(c), number(packets),
			c.MOS === undefined ? "–" : (c.MOS / 100).toFixed(1), c.loss === undefined ? "–" : (c.loss / 100).toFixed(1) + " %", number(c.errors)]);
	}));
	nextCursor = s.next || "";
	$("calls-pages").hidden = cursors.length < 2 && !nextCursor;
	$("calls-back").disabled = cursors.length < 2;
	$("calls-next").disabled = !nextCursor;
	$("calls-count").textContent = (filtered ? `${s.matched} of ${s.sessions.current} match` : `${s.matched}`) + (n < s.matched ? `, page ${cursors.length} with ${n}` : "");
	$("calls-none").hidden = n > 0;
	$("calls-none").textContent = filtered ? "No call matches." : "No calls.";
	$("filter-note").hidden = !s["by text"] || !$("filter").value;
}

function showEnded(s) {
	const list = s["ended calls"] || [], all = s["ended matched"] || 0, lost = s["ended not kept"];
	if (!list.length && endedSkip) {
		endedSkip = 0;
		look();
	}
	fill($("ended-rows"), list.map((c) => {
		const why = element("span", c.reason);
		if (c["one-way"]) why.append(" ", element("span", "one-way", "tag bad"));
		if (!c.answered) why.append(" ", element("span", "never answered", "tag"));
		return row(ENDED, [callButton(c.id), parties(c), why, duration((c.ended - (c.answered || c.created)) / 1000), duration((s.now - c.ended) / 1000) + " ago"]);
	}));
	endedMore = endedSkip + list.length < all;
	$("ended-count").textContent = `${all}${list.length < all ? `, ${endedSkip + 1} to ${endedSkip + list.length}` : ""}${lost ? `; ${lost} more are not kept` : ""}`;
	$("ended-pages").hidden = !endedSkip && !endedMore;
	$("ended-back").disabled = !endedSkip;
	$("ended-next").disabled = !endedMore;
}

// The output of "xcipherctl explain".
function explained(e) {
	const parts = [element("h3", "Explanation")], summary = element("ul");
	for (const t of e.summary) summary.append(element("li", t));
	parts.push(summary);
	for (const l of e.legs) {
		parts.push(element("h4", `${l.role} ${l.tag || ""}, media ${l.media}: ${[l.kind + (l.codec ? " " + l.codec : ""), l.protocol, l.direction].join(", ")}`));
		const list = element("dl");
		const suite = l["suite in"] === l["suite out"] ? l["suite in"] : `${l["suite in"]} from the terminal, to it ${l["suite out"]}`;
		for (const [name, text] of [["trouble", l.trouble], ["suite", suite], ["because", l.why], ["transcoded", l.transcoded], ["audio", l.audio],
			["SRTP+", l["SRTP+"]], ["address", l.source], ["in", l.received], ["out", l.sent], ["dropped", l.dropped]])
			if (text) list.append(element("dt", name), element("dd", text, name === "trouble" ? "bad" : ""));
		parts.push(list);
	}
	const table = element("table"), body = element("tbody");
	for (const v of e.events || [])
		body.append(row([["Time"], ["Event"], ["Text"]], [new Date(v.time).toLocaleTimeString(), v.tag ? `${v.event} ${v.tag}` : v.event, v.text]));
	table.append(body);
	parts.push(element("h3", "What happened"), table);
	if (e["events left out"]) parts.push(element("p", `${e["events left out"]} events in between are not kept.`, "dim"));
	return parts;
}

function showGone(c) {
	if (!c) return [element("p", "This call has ended, or never was here.", "dim")];
	return [element("p", parties(c)), element("p", `Ended at ${new Date(c.ended).toLocaleString()}.`, "dim"), element("p", c.text)];
}

function address(e) {
	return e ? (e.family === "IPv6" ? `[${e.address}]:${e.port}` : `${e.address}:${e.port}`) : "not known yet";
}

// The protection of a media, as far as the relay knows.
function security(m) {
	if (m.keying === "SDES end-to-end") return `${m["crypto suite"]}, keys end-to-end`;
	if (m.ZRTP) return [m["crypto suite"], `ZRTP SAS ${m.ZRTP.SAS}`, m.ZRTP.verified === "yes" ? "verified" : "not verified",
		...(m.ZRTP["retained secrets"] === "mismatch" ? ["RETAINED SECRETS DO NOT MATCH"] : []),
		...(m.ZRTP.enrolled === "yes" ? ["enrolled"] : []),
		...(m.ZRTP.discloses === "yes" ? ["TERMINAL MAY DISCLOSE KEYS OR MEDIA"] : [])].join(", ");
	if (m.MIKEY) return `${m["crypto suite"]}, MIKEY with ${m.MIKEY.peer}`;
	if (m["crypto suite"] || m.keying) return m["crypto suite"] || m.keying;
	return m.streams.some((s) => s.flags.includes("datagrams")) ? "not RTP" : "plain RTP";
}

const STREAM = [["Stream"], ["Local"], ["Remote"], ["In", 1], ["Out", 1], ["Dropped", 1], ["Last packet", 1]];

function showDetail(s) {
	const d = s.detail, body = $("detail-body");
	if (!opened || !d || d.id !== opened) return;
	$("detail-title").textContent = d.id;
	if (d.gone) {
		body.replaceChildren(...showGone(d.closing));
		$("detail-actions").hidden = true;
		return;
	}
	const parts = [element("p", `Since ${new Date(d.created * 1000).toLocaleString()}, last signalled ${duration(s.now / 1000 - d["last signal"])} ago.`, "dim")];
	const explain = d.explain || {legs: []}, roles = new Map(explain.legs.map((l) => [l.tag || "", l.role]));
	if (explain.summary) parts.push(...explained(explain));
	parts.push(element("h3", "Streams"));
	for (const side of Object.values(d.tags || {})) {
		parts.push(element("h4", [roles.get(side.tag || "") || "party", side.tag || "without a tag yet"].join(" ")));
		for (const m of side.medias) {
			parts.push(element("p", `${m.type}, ${m.protocol}, ${security(m)}; ${m.flags.join(", ")}`));
			const t = element("table", undefined, "stack"), head = element("thead"), tr = element("tr"), rows = element("tbody");
			for (const c of STREAM) tr.append(element("th", c[0], c[1] ? "num" : ""));
			head.append(tr);
			for (const x of m.streams) {
				const kind = x.flags.includes("datagrams") ? "Datagrams" : x.flags.includes("RTP") ? x.flags.includes("RTCP") ? "RTP + RTCP" : "RTP" : "RTCP";
				rows.append(row(STREAM, [kind, `${x["local address"] || ""}:${x["local port"]}`, address(x.endpoint), number(x.stats.packets), number(x.stats_out.packets),
					x.drops ? Object.entries(x.drops).map((e) => `${e[0]} ${e[1]}`).join(", ") : number(x.stats.errors),
					x["last packet"] ? duration(s.now / 1000 - x["last packet"]) + " ago" : "never"]));
			}
			t.append(head, rows);
			parts.push(t);
			for (const x of m["ingress SSRCs"] || []) {
				const q = x["average MOS"];
				if (q) parts.push(element("p", `The other side hears it with MOS ${(q.MOS / 10).toFixed(1)} (lowest ${(x["lowest MOS"].MOS / 10).toFixed(1)}), ${q["packet loss"]} % loss, ` +
					`${q.jitter} ms jitter, ${time(q["round-trip time"] * 1000)} round trip: ${q.samples} reports, ${x["cumulative loss"]} packets lost.`));
			}
		}
	}
	body.replaceChildren(...parts);
	$("detail-actions").hidden = false;
}

function show(s) {
	const seconds = last ? (s.now - last.now) / 1000 : 0;
	for (const id of ["tiles", "charts", "calls", "ended", "more"]) $(id).hidden = false;
	for (const one of s.samples || []) if (!samples.length || one[0] > samples[samples.length - 1][0]) samples.push(one);
	samples = samples.filter((one) => s.now - one[0] <= SPAN_MS);
	sampleMs = s["sample ms"] || sampleMs;
	showNow(s, last, seconds);
	showMore(s, last, seconds);
	showCalls(s, last, seconds);
	showEnded(s);
	showDetail(s);
	drawCharts(s);
	last = s;
}

// --- Talking to the daemon ----------------------------------------------------------------------------------------

function connected(word, className) {
	$("state").textContent = word;
	$("state").className = className;
	document.body.classList.toggle("stale", className === "gone");
}

function say(o) {
	if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(o));
}

function look() {
	say({show: $("show").value, filter: $("filter").value, sort: $("sort").value, after: cursors[cursors.length - 1], ended: String(endedSkip), call: opened});
	const p = new URLSearchParams(Object.entries({call: opened, show: $("show").value, sort: $("sort").value, filter: $("filter").value}).filter((e) => e[1]));
	window.history.replaceState(null, "", "#" + p);
	for (const b of document.querySelectorAll("button[data-sort]")) {
		const on = $("sort").value === b.dataset.sort;
		b.parentNode.setAttribute("aria-sort", on ? "other" : "none");
		b.setAttribute("aria-pressed", on);
	}
}

// Another list begins at its first page.
function search() {
	cursors = [""];
	endedSkip = 0;
	look();
}

function openCall(id) {
	opened = id;
	$("detail-title").textContent = id;
	$("detail-link").href = "#" + new URLSearchParams({call: id});
	$("detail-body").replaceChildren(element("p", "…", "dim"));
	$("detail-actions").hidden = false;
	sure(false);
	if (!$("detail").open) $("detail").showModal();
	look();
}

// The address in the fragment. Other fragments are places on the page.
function follow() {
	const p = new URLSearchParams(location.hash.slice(1));
	if (!["call", "show", "sort", "filter"].some((k) => p.has(k))) return;
	for (const k of ["show", "sort", "filter"]) $(k).value = p.get(k) || "";
	for (const k of ["show", "sort"]) if ($(k).selectedIndex < 0) $(k).selectedIndex = 0;
	if (p.get("call") && p.get("call") !== opened) openCall(p.get("call"));
	else search();
}

function hear(m) {
	if (m.need === "token") {
		const token = sessionStorage.getItem("token");
		if (token) say({token});
		else {
			$("login").hidden = false;
			connected("token needed", "");
			$("token").focus();
		}
	} else if (m.hello) {
		mayEnd = Boolean(m["may end"]);
		$("login").hidden = true;
		$("end").hidden = !mayEnd;
		$("end-why").hidden = mayEnd;
		retry = 1000;
		heard = performance.now();
		connected("live", "live");
		if (!followed) follow();
		followed = true;
		look();
	} else if (m.daemon !== undefined) { // xcipher-web is there, xcipherd is not; the next data says that it is back
		heard = 0;
		last = null;
		connected("xcipherd does not answer", "gone");
	} else if (m.history) {
		samples = m.history.samples || [];
	} else if (m.ended !== undefined) {
		endSent = m.ok ? `Ended: ${m.ended}` : `Not ended: ${m.ended} (it may be gone already)`;
		setTimeout(() => { endSent = ""; }, 8000);
		if (m.ok && m.ended === opened) $("detail").close();
	} else if (m.now) {
		heard = performance.now();
		connected("live", "live");
		show(m);
	}
}

function connect() {
	socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`, "page.xcipher");
	socket.onmessage = (e) => hear(JSON.parse(e.data));
	socket.onclose = (e) => {
		heard = 0;
		if (e.code === 1008) {
			sessionStorage.removeItem("token");
			connected("wrong token", "gone");
			$("login").hidden = false;
			$("token").value = "";
			$("token").focus();
			retry = 1000;
			return;
		}
		if (!$("login").hidden) { // no token within its time: wait for one
			connected("token needed", "");
			return;
		}
		connected("no connection, trying again", "gone");
		last = null;
		clearTimeout(timer);
		timer = setTimeout(connect, retry);
		retry = Math.min(retry * 2, 15000);
	};
}

// A daemon that has stopped keeps its connections.
setInterval(() => {
	const silent = performance.now() - heard;
	if (heard && silent > STALE_MS) connected(`no data for ${Math.floor(silent / 1000)} s`, "gone");
}, 1000);

// --- Hands --------------------------------------------------------------------------------------------------------

$("login").addEventListener("submit", (e) => {
	e.preventDefault();
	sessionStorage.setItem("token", $("token").value.trim());
	$("token").value = "";
	if (socket.readyState === WebSocket.OPEN) say({token: sessionStorage.getItem("token")});
	else connect();
	connected("connecting", "");
});
for (const id of ["filter", "show", "sort"]) $(id).addEventListener("input", search);
for (const b of document.querySelectorAll("button[data-sort]"))
	b.addEventListener("click", () => {
		$("sort").value = $("sort").value === b.dataset.sort ? "" : b.dataset.sort;
		search();
	});
$("calls-next").addEventListener("click", () => {
	if (nextCursor) cursors.push(nextCursor);
	look();
});
$("calls-back").addEventListener("click", () => {
	if (cursors.length > 1) cursors.pop();
	look();
});
$("ended-next").addEventListener("click", () => {
	if (endedMore) endedSkip += $("ended-rows").children.length;
	look();
});
$("ended-back").addEventListener("click", () => {
	endedSkip = Math.max(0, endedSkip - 20);
	look();
});
for (const id of ["calls-rows", "ended-rows"])
	$(id).addEventListener("click", (e) => {
		const b = e.target.closest("button.call");
		if (b) openCall(b.dataset.call);
	});
window.addEventListener("hashchange", follow);
$("detail").addEventListener("close", () => {
	const was = opened;
	opened = "";
	look();
	for (const b of document.querySelectorAll("button.call")) if (b.dataset.call === was) b.focus();
});
$("detail-close").addEventListener("click", () => $("detail").close());
function sure(asked) {
	$("end").hidden = asked || !mayEnd;
	$("end-sure").hidden = !asked;
	if (asked) $("end-no").focus();
}
$("end").addEventListener("click", () => sure(true));
$("end-no").addEventListener("click", () => sure(false));
$("end-yes").addEventListener("click", () => {
	say({end: opened});
	sure(false);
});
document.addEventListener("keydown", (e) => {
	if (e.key === "/" && !$("detail").open && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
		e.preventDefault();
		$("filter").focus();
	}
});
connect();
