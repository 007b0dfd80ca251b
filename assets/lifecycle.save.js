// All runs as files, made in the browser.

const EVENT_FIELDS = ["at", "what", "hook", "kind", "path", "call", "shapes", "detail"];
const RUN_FIELDS = ["run", "title", "page", "started"];

const ofRun = (row) => ({
  ...row, run: row.run.number, title: row.run.title, page: row.run.page, started: row.run.started,
});

function only(row, fields) {
  return Object.fromEntries(fields.map((field) => [field, row[field]]));
}

function runsAsJson(runs) {
  const plain = runs.map((run) => ({
    run: run.number, title: run.title, page: run.page, started: run.started, began: run.began,
    failed: run.failed, dropped_events: run.dropped, foreign: run.foreign,
    records: run.records.map((record) => only(record, FIELDS)),
    events: run.events.map((event) => only(event, EVENT_FIELDS)),
  }));
  return `${JSON.stringify({ runs: plain }, null, 1)}\n`;
}

function saveRuns(runs, what) {
  const name = `hookscope-${fileTime(runs[0].started)}`;
  if (what === "json") return saveText(runsAsJson(runs), `${name}-runs.json`);
  const fields = what === "events" ? EVENT_FIELDS : FIELDS;
  const rows = runs.flatMap((run) => run[what].map(ofRun));
  return saveText(csvOf(rows, [...RUN_FIELDS, ...fields]), `${name}-${what}.csv`);
}
