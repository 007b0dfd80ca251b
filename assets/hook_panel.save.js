// The records as a file, made in the browser.

const FIELDS = [
  "id", "kind", "path", "class_name", "purpose", "origin",
  "registered_at", "removed_at", "fires", "seconds", "bytes_held", "status", "returned",
];

function csvCell(value) {
  const text = value === null ? "" : String(value);
  // A spreadsheet would run a name such as «=HYPERLINK(…)» as a formula.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(rows, fields) {
  const lines = rows.map((row) => fields.map((field) => csvCell(row[field])).join(","));
  return [fields.join(","), ...lines].join("\r\n") + "\r\n";
}

function save(ledger, format) {
  const text = format === "csv" ? csvOf(ledger.records, FIELDS) : `${JSON.stringify(ledger, null, 2)}\n`;
  saveText(text, `hooks-${fileTime(ledger.started)}.${format}`);
}

const fileTime = (iso) => iso.replace(/[^0-9A-Za-z]+/g, "-").slice(0, 19);

function saveText(text, name) {
  const type = name.endsWith(".csv") ? "text/csv;charset=utf-8" : "application/json";
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
