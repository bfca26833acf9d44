"""The chain of a ledger's export, as docs/LEDGER.md describes it: a second implementation, which
shares nothing with the first."""

import base64
import hashlib
import json
import struct

COLUMNS = (
    "seq kind time_us run session intent policy name code code_bytes code_kept owner pid status "
    "exit_code signal limit_name limit_value message error wall_us cpu_us peak_memory_bytes "
    "processes stdout_bytes stderr_bytes incidents incidents_dropped interpreter isolation start "
    "number rule layer fact action act reason count line col remedy").split()
BLOBS = ("code",)


def _value(name, value):
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\1" + struct.pack(">q", value)
    data = bytes.fromhex(value) if name in BLOBS else value.encode()
    return (b"\3" if name in BLOBS else b"\2") + struct.pack(">Q", len(data)) + data


def row_hash(before, row):
    text = b"adyton.ledger/1 row\0" + bytes.fromhex(before)
    text += b"".join(_value(name, row.get(name)) for name in COLUMNS)
    return hashlib.blake2b(text, digest_size=32).hexdigest()


def code_hash(code):
    return hashlib.blake2b(b"adyton.ledger/1 code\0" + code, digest_size=32).hexdigest()


def problems(export):
    """What is wrong with an export (bytes), as sentences."""
    lines = [json.loads(line) for line in export.splitlines()]
    seq, at, found, kept, texts = lines[0]["anchor_seq"], lines[0]["anchor_hash"], [], set(), set()
    for line in lines[1:-1]:
        if "base64" in line:
            texts.add(line["code"])
            if code_hash(base64.b64decode(line["base64"], validate=True)) != line["code"]:
                found.append("the text of %s is not its own" % line["code"])
            continue
        seq += 1
        if line["seq"] != seq or set(line) - set(COLUMNS) - {"hash"}:
            found.append("row %d: %r" % (seq, line))
        at = row_hash(at, line)
        if line["hash"] != at:
            found.append("row %d: the hash does not follow" % seq)
        if line["kind"] == "intent" and line["code_kept"]:
            kept.add(line["code"])
    if (lines[-1]["head_seq"], lines[-1]["head_hash"]) != (seq, at):
        found.append("the head is %r, not %r" % (lines[-1], (seq, at)))
    if kept != texts:
        found.append("the texts are %r, not %r" % (texts, kept))
    return found


def write(rows, texts=(), anchor=(0, "00" * 32)):
    """A sound export of these rows (dicts without seq and hash)."""
    seq, at = anchor
    lines = [{"schema": "adyton.ledger/1", "anchor_seq": seq, "anchor_hash": at}]
    for row in rows:
        seq += 1
        row = dict(row, seq=seq)
        at = row_hash(at, row)
        lines.append(dict(row, hash=at))
    lines += [{"code": code_hash(text), "base64": base64.b64encode(text).decode()}
              for text in texts]
    lines.append({"head_seq": seq, "head_hash": at})
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
