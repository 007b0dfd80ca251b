// The records as a file, made in the browser.

const FIELDS = [
  "id", "kind", "path", "class_name", "purpose", "origin",
  "registered_at", "removed_at", "fires", "seconds", "bytes_held", "status",
];

function csvCell(value) {
  const text = value === null ? "" : String(value);
  // A spreadsheet would run a name such as «=HYPERLINK(…)» as a formula.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(records) {
  const rows = records.map((record) => FIELDS.map((field) => csvCell(record[field])).join(","));
  return [FIELDS.join(","), ...rows].join("\r\n") + "\r\n";
}

function save(ledger, format) {
  const text = format === "csv" ? csvOf(ledger.records) : `${JSON.stringify(ledger, null, 2)}\n`;
  const type = format === "csv" ? "text/csv;charset=utf-8" : "application/json";
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `hooks-${ledger.started.replace(/[^0-9A-Za-z]+/g, "-").slice(0, 19)}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
