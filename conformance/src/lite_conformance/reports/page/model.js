// The data of the page: the reports and their records; statuses and numbers as text.

const data = JSON.parse(document.getElementById("data").textContent);
const reports = data.reports;
const several = reports.length > 1;

const STATUS = {
  passed: { sign: "✓", word: "passed" },
  failed: { sign: "✗", word: "failed" },
  crashed: { sign: "†", word: "crashed" },
  hung: { sign: "∞", word: "hung" },
  error: { sign: "?", word: "error" },
  xpass: { sign: "!", word: "unexpected pass" },
  xfail: { sign: "~", word: "expected failure" },
  unsupported: { sign: "–", word: "unsupported" },
  skipped: { sign: "○", word: "skipped" },
};
const rank = new Map(data.severity.map((status, index) => [status, index]));
const bad = new Set(data.bad);
const isLoosened = (record) => Boolean(record.tolerance && record.tolerance.loosened);
const worstFirst = (a, b) => rank.get(a.status) - rank.get(b.status);

// Element types in the order of the matrix; other types follow by name.
const DTYPES = [
  "float32", "float16", "bfloat16", "float64",
  "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
  "bool", "string", "complex64", "complex128",
];
const SHORT = {
  float32: "f32", float16: "f16", bfloat16: "bf16", float64: "f64",
  int8: "i8", uint8: "u8", int16: "i16", uint16: "u16", int32: "i32", uint32: "u32", int64: "i64", uint64: "u64",
  string: "str", complex64: "c64", complex128: "c128",
};
const shortType = (dtype) => SHORT[dtype] || dtype || "–";

const letter = (report) => (report < 26 ? String.fromCharCode(65 + report) : String(report + 1));

const records = [];
reports.forEach((report, r) => {
  report.backends = [...new Set(report.records.map((record) => record.backend || ""))].filter(Boolean);
  report.records.forEach((record) => {
    record.report = r;
    record.id = records.length;
    record.tolerance = record.tolerance === undefined ? null : data.tolerances[record.tolerance];
    record.group = record.expectation || record.reason || "no reason given";
    records.push(record);
  });
});

// A column of the matrix: a report, or one backend of a report that has several.
const subjects = reports.flatMap((report, r) =>
  report.backends.length < 2
    ? [{ report: r, backend: null, label: several ? letter(r) : "", name: report.name }]
    : report.backends.map((backend) => ({
        report: r,
        backend,
        label: several ? `${letter(r)} ${backend}` : backend,
        name: `${report.name}, ${backend}`,
      })),
);
const isOf = (record, subject) =>
  record.report === subject.report && (subject.backend === null || (record.backend || "") === subject.backend);

const dtypes = [...new Set(records.map((record) => record.dtype || ""))].sort((a, b) => {
  const [i, j] = [DTYPES.indexOf(a), DTYPES.indexOf(b)].map((index) => (index < 0 ? 99 : index));
  return i - j || (a === "" ? 1 : b === "" ? -1 : a < b ? -1 : 1);
});
const levels = [...new Set(records.map((record) => record.level))].sort((a, b) => a - b);

function haystack(record) {
  if (record.hay === undefined) {
    const texts = [
      record.case, record.op, record.dtype, record.suite, record.status, record.reason, record.expectation,
      record.device, record.backend, record.measured && record.measured.worst,
    ];
    record.hay = texts.filter(Boolean).join("\n").toLowerCase();
  }
  return record.hay;
}

function countBy(list, key) {
  const counts = new Map();
  for (const item of list) counts.set(key(item), (counts.get(key(item)) || 0) + 1);
  return counts;
}

function groupBy(list, key) {
  const groups = new Map();
  for (const item of list) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

// Numbers. Those that are not finite are texts: "inf", "-inf", "nan".

const count = (value) => value.toLocaleString("en-US");

function figure(value) {
  if (value === undefined || value === null) return "0";
  if (typeof value !== "number") return value.replace("inf", "∞").replace("nan", "NaN");
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e5) return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  const [mantissa, exponent] = value.toExponential(2).split("e");
  const digits = exponent.slice(1).padStart(2, "0");
  return `${Number(mantissa)}e${exponent[0]}${digits}`;
}

function duration(seconds) {
  if (!seconds) return "";
  if (typeof seconds !== "number") return figure(seconds);
  if (seconds < 0.9995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 120 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function usedTolerance(record) {
  if (record.used === undefined) return "";
  if (typeof record.used !== "number") return "∞×";
  if (record.used < 10) return `${record.used.toFixed(2)}×`;
  return record.used < 1e5 ? `${count(Math.round(Number(record.used.toPrecision(3))))}×` : `${figure(record.used)}×`;
}
