// SPDX-License-Identifier: GPL-2.0-or-later
// The page: hears a snapshot each second over a WebSocket and shows it. Whatever comes from outside is shown as text
// (textContent), never as markup. Rates are differences between snapshots.
"use strict";

const $ = (id) => document.getElementById(id);
const SPAN = 120; // seconds that the chart shows
let socket, mayEnd = false, last = null, opened = "", rates = [], history = [], retry = 1000, timer = 0, endSent = "";

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

function drawRate() {
	const chart = $("rate"), w = 400, h = 120, top = Math.max(10, ...rates.map((r) => r.in));
	const points = (key) => rates.map((r, i) => `${w - (rates.length - 1 - i) * w / SPAN},${h - 4 - r[key] / top * (h - 14)}`).join(" ");
	const first = w - (rates.length - 1) * w / SPAN;
	chart.replaceChildren(
		svg("line", {x1: 0, x2: w, y1: 10, y2: 10, class: "grid-line"}), svg("line", {x1: 0, x2: w, y1: h - 4, y2: h - 4, class: "grid-line"}),
		svg("polygon", {points: `${first},${h - 4} ${points("in")} ${w},${h - 4}`, class: "area"}),
		svg("polyline", {points: points("in"), class: "in"}));
	if (rates.some((r) => r.drops > 0)) chart.append(svg("polyline", {points: points("drops"), class: "bad"}));
	$("rate-span").textContent = `two minutes, up to ${number(top)}`;
}

function drawBars(name, now, before, label) {
	const counts = now.counts.map((n, i) => before && n >= before.counts[i] ? n - before.counts[i] : n);
	const top = Math.max(1, ...counts), w = 400 / counts.length;
	const chart = $(name);
	if (chart.children.length !== counts.length) {
		chart.replaceChildren(...counts.map((_, i) => svg("rect", {x: i * w + 1, width: w - 2, y: 120, height: 0})));
		chart.querySelectorAll("rect").forEach((r) => r.append(svg("title", {})));
	}
	counts.forEach((n, i) => {
		const bar = chart.children[i], height = n ? Math.max(2, n / top * 112) : 0;
		bar.setAttribute("y", 120 - height);
		bar.setAttribute("height", height);
		bar.firstChild.textContent = `${label(i, counts.length)}: ${n}`;
	});
	const axis = $(name + "-axis"), marks = [0, Math.floor(counts.length / 2), counts.length - 1].map((i) => label(i, counts.length));
	if (axis.textContent !== marks.join("")) axis.replaceChildren(...marks.map((m) => element("span", m)));
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
	const jobs = sum(w, "jobs") - (wb.length ? sum(wb, "jobs") : 0), batches = sum(w, "batches") - (wb.length ? sum(wb, "batches") : 0);
	if (before) rates.push({in: packets, drops});
	rates = rates.slice(-SPAN - 1);
	$("tiles").replaceChildren(
		tile("calls", number(s.sessions.current)), tile("packets/s in", number(packets)), tile("packets/s out", number(out)),
		tile("refused/s", number(drops), drops > packets / 100 && drops > 0),
		tile("delay, median", x.latency.count ? time(x.latency.p50_us * 1000) : "–"), tile("delay, 99 %", x.latency.count ? time(x.latency.p99_us * 1000) : "–"),
		tile("mean batch", batches > 0 ? number(jobs / batches) : "–"), tile("ports free", number(x["ports free"])));
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

const WORKER = [["Worker"], ["In/s", 1], ["Out/s", 1], ["Mean batch", 1], ["Per packet", 1], ["Refused", 1]];
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
}

const CALL = [["Call-ID"], ["Age", 1], ["State"], ["Suites"], ["Packets/s", 1], ["MOS", 1], ["Loss", 1], ["Refused", 1]];

function state(c, now) {
	const box = element("span");
	const word = c.ending ? "ending" : !c.answered ? "ringing" : "talking";
	box.append(element("span", word, "tag"));
	if (c.emergency) box.append(element("span", "emergency", "tag bad"));
	const silent = c["last packet"] ? now / 1000 - c["last packet"] : 0;
	if (c.answered && silent > 5) box.append(element("span", `silent ${duration(silent)}`, "tag bad"));
	else if (c.answered && c.legs.some((l) => l.packets > 0) && c.legs.some((l) => l.active && !l.packets)) box.append(element("span", "one way", "tag bad"));
	return box;
}

// The worse of the two directions, as the terminals report by RTCP.
function worst(c, key, pick, scale, digits) {
	const list = c.legs.filter((l) => l.MOS !== undefined).map((l) => l[key]);
	return list.length ? (pick(...list) / scale).toFixed(digits) : "–";
}

function suites(c) {
	const box = element("span");
	for (const l of c.legs) {
		const name = l.suite === "plain" && l.keying ? l.keying : l.suite;
		box.append(element("span", name, name === "plain" ? "tag plain" : "tag"));
	}
	return box;
}

function showCalls(s, before, seconds) {
	const old = new Map((before ? before.calls : []).map((c) => [c.id, c])), body = $("calls-rows");
	const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.call : undefined;
	body.replaceChildren(...s.calls.map((c) => {
		const b = old.get(c.id), button = element("button", c.id, "call");
		button.type = "button";
		button.dataset.call = c.id;
		const packets = rate(sum(c.legs, "packets"), b ? sum(b.legs, "packets") : undefined, seconds);
		return row(CALL, [button, duration(s.now / 1000 - c.created), state(c, s.now), suites(c), number(packets),
			worst(c, "MOS", Math.min, 100, 1), worst(c, "loss", Math.max, 100, 1).replace(/^(\d.*)/, "$1 %"), number(sum(c.legs, "errors"))]);
	}));
	if (focused !== undefined)
		for (const b of body.querySelectorAll("button.call")) if (b.dataset.call === focused) b.focus({preventScroll: true});
	const more = s.matched > s.calls.length ? `, the newest ${s.calls.length} shown` : "";
	$("calls-count").textContent = $("filter").value ? `${s.matched} of ${s.sessions.current} match${more}` : `${s.sessions.current}${more}`;
	$("calls-none").hidden = s.calls.length > 0;
	$("calls-none").textContent = $("filter").value ? "No call matches." : "No calls.";
}

function address(e) {
	return e ? (e.family === "IPv6" ? `[${e.address}]:${e.port}` : `${e.address}:${e.port}`) : "not known yet";
}

// What protects a media, as far as the relay knows.
function security(m) {
	if (m.keying === "SDES end-to-end") return `${m["crypto suite"]}, keys end-to-end`;
	if (m["crypto suite"] || m.keying) return m["crypto suite"] || m.keying;
	return m.streams.some((s) => s.flags.includes("datagrams")) ? "not RTP" : "plain RTP";
}

const STREAM = [["Stream"], ["Local"], ["Remote"], ["Packets in", 1], ["Out", 1], ["Refused", 1], ["Last", 1]];

function showDetail(s) {
	const d = s.detail, body = $("detail-body");
	if (!opened || !d || d.id !== opened) return;
	$("detail-title").textContent = d.id;
	if (d.gone) {
		body.replaceChildren(element("p", "This call has ended.", "dim"));
		$("detail-actions").hidden = true;
		return;
	}
	const parts = [element("p", `Since ${new Date(d.created * 1000).toLocaleString()}, last signalled ${duration(s.now / 1000 - d["last signal"])} ago.`, "dim")];
	for (const side of Object.values(d.tags || {})) {
		parts.push(element("h3", side.tag ? `Side ${side.tag}` : "Side without a tag yet"));
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
	for (const id of ["tiles", "charts", "calls", "more"]) $(id).hidden = false;
	showNow(s, last, seconds);
	showMore(s, last, seconds);
	showCalls(s, last, seconds);
	showDetail(s);
	drawRate();
	drawBars("delay", s.delay, history.length ? history[0].delay : null, delayLabel(s.delay.first));
	drawBars("batch", s.batch, history.length ? history[0].batch : null, batchLabel(s.batch.first));
	history.push({delay: s.delay, batch: s.batch});
	history = history.slice(-10);
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
	say({filter: $("filter").value, call: opened});
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
		connected("live", "live");
		look();
	} else if (m.ended !== undefined) {
		endSent = m.ok ? `Ended: ${m.ended}` : `Not ended: ${m.ended} (it may be gone already)`;
		setTimeout(() => { endSent = ""; }, 8000);
		if (m.ok && m.ended === opened) $("detail").close();
	} else if (m.now) {
		show(m);
	}
}

function connect() {
	socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`, "page.xcipher");
	socket.onmessage = (e) => hear(JSON.parse(e.data));
	socket.onclose = (e) => {
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

// --- Hands --------------------------------------------------------------------------------------------------------

$("login").addEventListener("submit", (e) => {
	e.preventDefault();
	sessionStorage.setItem("token", $("token").value.trim());
	$("token").value = "";
	if (socket.readyState === WebSocket.OPEN) say({token: sessionStorage.getItem("token")});
	else connect();
	connected("connecting", "");
});
$("filter").addEventListener("input", look);
$("calls-rows").addEventListener("click", (e) => {
	const b = e.target.closest("button.call");
	if (!b) return;
	opened = b.dataset.call;
	$("detail-title").textContent = opened;
	$("detail-body").replaceChildren(element("p", "…", "dim"));
	sure(false);
	$("detail").showModal();
	look();
});
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
