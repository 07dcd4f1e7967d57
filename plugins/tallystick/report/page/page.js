"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROWS_AT_ONCE = 200;
  const FINDINGS_AT_ONCE = 200;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const format = new Intl.NumberFormat("en");
  const number = (value) => value === null || value === undefined ? "?" : format.format(value).replace(/,/g, "\u2009");
  const instant = (text) => text.slice(0, 16).replace("T", " ");

  function layout(extra) {
    const axis = { gridcolor: colour("line"), linecolor: colour("line"), zerolinecolor: colour("line"), automargin: true };
    const {xaxis, yaxis, ...rest} = extra;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("ink"), family: "system-ui, sans-serif", size: 12 },
      margin: { l: 10, r: 10, t: 10, b: 10 }, hovermode: "x unified",
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: {...axis, ...xaxis}, yaxis: {...axis, rangemode: "tozero", ...yaxis}, ...rest,
    };
  }
  const config = { responsive: true, displaylogo: false, displayModeBar: false };
  const draw = (id, traces, extra) => Plotly.react(id, traces, layout(extra), config);

  function drawCoverage() {
    const words = data.verdicts, steps = words.length;
    const scale = words.flatMap((word, place) => [[place / steps, colour(word)], [(place + 1) / steps, colour(word)]]);
    const few = data.blocks.length <= 40 && data.edges.length <= 80;
    const spans = data.edges.slice(1).map((edge, column) => instant(data.edges[column]) + " to " + instant(edge) + "<br>");
    const text = data.cells.map((row, block) => {
      const [first, last] = data.blocks[block], whole = last - first + 1;
      const who = whole === 1 ? "partition " + first + "<br>" : "partitions " + first + " to " + last + "<br>";
      const all = whole === 1 ? "" : " (all " + number(whole) + ")";
      const how = (count) => count === whole ? all : " (" + number(count) + " of " + number(whole) + ")";
      return Array.from(row, (cell, column) => spans[column] + who + words[cell] + how(data.counts[block][column]));
    });
    const tops = data.blocks.map(([first]) => first - 0.5);
    if (data.blocks.length) tops.push(data.blocks[data.blocks.length - 1][1] + 0.5);
    draw("coverage-chart", [{
      type: "heatmap", x: data.edges, y: tops, z: data.cells.map((row) => Array.from(row, Number)),
      zmin: 0, zmax: steps - 1, colorscale: discrete(scale), showscale: false, text, hoverinfo: "text",
      xgap: few ? 1 : 0, ygap: few ? 1 : 0,
    }], {
      hovermode: "closest", xaxis: { type: "date", showgrid: false },
      yaxis: { autorange: "reversed", rangemode: "normal", showgrid: false, title: { text: "partition" }, tickformat: "d", ...(data.blocks.length <= 12 ? { dtick: 1 } : {}) },
    });
  }
  // Plotly spreads a scale from zmin to zmax: each verdict gets the stretch around its whole number.
  function discrete(scale) {
    const steps = data.verdicts.length, last = steps - 1, found = [];
    for (let place = 0; place < steps; place += 1) {
      const shade = scale[2 * place][1];
      found.push([Math.max(0, (place - 0.5) / last), shade], [Math.min(1, (place + 0.5) / last), shade]);
    }
    return found;
  }

  function drawBand() {
    const {at, start, frontier, stable, until} = data.band;
    const line = (y, name, shade, extra) => ({ type: "scatter", mode: at.length > 40 ? "lines" : "lines+markers", x: at, y, name, line: { color: shade, width: 2 }, marker: { size: 5 }, connectgaps: false, ...extra });
    draw("band-chart", [
      line(start, "log start", colour("PROVEN_LOSS")),
      line(frontier, "frontier", colour("PROVEN_OK"), { fill: "tonexty", fillcolor: colour("kept") }),
      line(until, "high watermark", colour("landed"), { fill: "tonexty", fillcolor: colour("lag") }),
      line(stable, "last stable", colour("aborted"), { line: { color: colour("aborted"), width: 1, dash: "dot" } }),
    ], { xaxis: { type: "date" }, yaxis: { rangemode: "normal" } });
  }

  const middles = data.edges.slice(0, -1).map((edge, place) => new Date((Date.parse(edge) + Date.parse(data.edges[place + 1])) / 2).toISOString());
  const widths = data.edges.slice(0, -1).map((edge, place) => Date.parse(data.edges[place + 1]) - Date.parse(edge));
  const bars = (y, name, shade) => ({ type: "bar", x: middles, y, width: widths.map((each) => each * 0.86), name, marker: { color: shade } });

  function drawWindows() {
    draw("windows-chart", [
      bars(data.landed, "landed", colour("landed")),
      { type: "scatter", mode: "lines", line: { shape: "hvh", color: colour("ink"), width: 1.5 }, x: middles, y: data.produced, name: "produced", connectgaps: false },
    ], { barmode: "overlay", xaxis: { type: "date" } });
  }
  function drawHoles() {
    const kinds = Object.keys(data.holes);
    draw("holes-chart", kinds.map((kind) => bars(data.holes[kind], kind, colour(kind))), { barmode: "stack", xaxis: { type: "date" } });
  }
  function span(seconds) {
    return seconds >= 86400 ? seconds / 86400 + " d" : seconds / 3600 + " h";
  }
  function drawAges() {
    const label = ([, from, until]) => from === null ? "never" : until === null ? "over " + span(from) : "under " + span(until);
    const order = [...new Map(data.ages.map((each) => [each[1] === null ? Infinity : each[1], label(each)])).entries()].sort((a, b) => a[0] - b[0]).map((each) => each[1]);
    const levels = [...new Set(data.ages.map((each) => each[0]))];
    draw("ages-chart", levels.map((level, place) => {
      const mine = data.ages.filter((each) => each[0] === level);
      const shade = colour(place ? "landed" : "compacted");
      return { type: "bar", name: level, x: mine.map(label), y: mine.map((each) => each[3]), marker: { color: mine.map((each) => each[1] === null ? colour("UNKNOWN") : shade) }, customdata: mine.map((each) => number(each[4])), hovertemplate: "%{y} batches, %{customdata} rows" };
    }), { barmode: "group", showlegend: levels.length > 1, xaxis: { type: "category", categoryorder: "array", categoryarray: order }, yaxis: { title: { text: "batches" } } });
  }

  const charts = [drawCoverage, drawBand, drawWindows, drawHoles, drawAges];
  // One chart at a time: the page answers in between.
  const soon = () => new Promise((done) => setTimeout(done, 0));
  async function drawAll() {
    for (const each of charts) {
      each();
      await soon();
    }
  }

  async function rest() {
    const packed = Uint8Array.from(atob(document.getElementById("rest").textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function cardOf(finding) {
    const card = document.getElementById("finding-card").content.firstElementChild.cloneNode(true);
    card.dataset.verdict = finding.verdict;
    for (const [name, text] of Object.entries(finding)) {
      const place = card.querySelector("." + name);
      place.textContent = text;
      if (name === "verdict") place.dataset.verdict = text;
    }
    return card;
  }
  function moreFindings(findings) {
    const button = document.getElementById("show-findings");
    if (!button) return;
    let shown = 0;
    button.addEventListener("click", () => {
      document.getElementById("more-findings").append(...findings.slice(shown, shown + FINDINGS_AT_ONCE).map(cardOf));
      shown += FINDINGS_AT_ONCE;
      button.hidden = shown >= findings.length;
      button.textContent = "Show more of " + number(findings.length - shown) + " others";
    });
  }

  function partitionTable(rows) {
    const body = document.getElementById("partition-rows"), button = document.getElementById("show-partitions");
    const filter = document.getElementById("partition-filter"), verdict = document.getElementById("verdict-filter");
    const said = document.getElementById("partition-count");
    for (const word of new Set(rows.map((row) => row[1]))) verdict.add(new Option(word, word));
    let found = rows, shown = body.rows.length;
    const rowOf = (cells) => {
      const row = document.createElement("tr");
      cells.forEach((text, place) => {
        const cell = row.insertCell();
        cell.textContent = text;
        if (place === 1) { cell.className = "verdict"; cell.dataset.verdict = text; }
      });
      return row;
    };
    const tell = () => {
      button.hidden = shown >= found.length;
      said.textContent = number(Math.min(shown, found.length)) + " of " + number(found.length) + " shown";
    };
    button.addEventListener("click", () => {
      body.append(...found.slice(shown, shown + ROWS_AT_ONCE).map(rowOf));
      shown += ROWS_AT_ONCE;
      tell();
    });
    const search = () => {
      const wanted = filter.value.trim();
      found = rows.filter((row) => (!wanted || row[0].startsWith(wanted)) && (!verdict.value || row[1] === verdict.value));
      shown = ROWS_AT_ONCE;
      body.replaceChildren(...found.slice(0, shown).map(rowOf));
      tell();
    };
    filter.addEventListener("input", search);
    verdict.addEventListener("change", search);
    tell();
  }

  async function open() {
    await drawAll();
    const {findings, partitions} = await rest();
    moreFindings(findings);
    partitionTable(partitions);
    // Milliseconds since the page was asked for: what bench/report_page.py reads.
    document.documentElement.dataset.ready = Math.round(performance.now());
  }
  open();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
