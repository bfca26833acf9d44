"""SARIF 2.1.0, as far as we write it: the members, types and values that the OASIS standard
demands of each object (sections 3.13 to 3.58), as a table, and what it says beyond types."""

import re

URI = re.compile(r"^[A-Za-z0-9\-._~/%]+$")

# object: {member: (type or object, required)}; additional members are errors.
OBJECTS = {
    "log": {"$schema": (str, False), "version": ("2.1.0", True), "runs": (["run"], True)},
    "run": {"tool": ("tool", True), "columnKind": (("utf16CodeUnits", "unicodeCodePoints"), False),
            "invocations": (["invocation"], False), "results": (["result"], False)},
    "tool": {"driver": ("toolComponent", True)},
    "toolComponent": {"name": (str, True), "version": (str, False), "semanticVersion": (str, False),
                      "rules": (["reportingDescriptor"], False)},
    "reportingDescriptor": {"id": (str, True), "shortDescription": ("multiformat", False),
                            "fullDescription": ("multiformat", False), "help": ("multiformat", False),
                            "defaultConfiguration": ("reportingConfiguration", False),
                            "properties": (dict, False)},
    "reportingConfiguration": {"level": (("none", "note", "warning", "error"), False)},
    "multiformat": {"text": (str, True)},
    "invocation": {"executionSuccessful": (bool, True),
                   "toolExecutionNotifications": (["notification"], False)},
    "notification": {"message": ("multiformat", True), "locations": (["location"], False),
                     "level": (("none", "note", "warning", "error"), False)},
    "result": {"ruleId": (str, False), "ruleIndex": (int, False), "message": ("multiformat", True),
               "level": (("none", "note", "warning", "error"), False),
               "locations": (["location"], False)},
    "location": {"physicalLocation": ("physicalLocation", False)},
    "physicalLocation": {"artifactLocation": ("artifactLocation", True), "region": ("region", False)},
    "artifactLocation": {"uri": (str, True)},
    "region": {"startLine": (int, True), "startColumn": (int, False), "endLine": (int, False),
               "endColumn": (int, False), "snippet": ("multiformat", False)},
}


def _walk(value, kind, where):
    if isinstance(kind, list):
        if not isinstance(value, list):
            return ["%s is no array" % where]
        return [p for i, item in enumerate(value) for p in _walk(item, kind[0], "%s[%d]" % (where, i))]
    if isinstance(kind, tuple):
        return [] if value in kind else ["%s is %r" % (where, value)]
    if isinstance(kind, type):
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        return [] if right else ["%s is %r, no %s" % (where, value, kind.__name__)]
    if kind not in OBJECTS:
        return [] if value == kind else ["%s is %r, not %r" % (where, value, kind)]
    if not isinstance(value, dict):
        return ["%s is no object" % where]
    members = OBJECTS[kind]
    found = ["%s.%s is not there" % (where, m) for m, (_, needed) in members.items()
             if needed and m not in value]
    found += ["%s.%s is not known" % (where, m) for m in value if m not in members]
    for member, (inner, _) in members.items():
        if member in value:
            found += _walk(value[member], inner, where + "." + member)
    return found


def problems(log, files):
    """What is wrong with a log of ours; `files` are parts of the names that it must speak of."""
    found = _walk(log, "log", "log")
    if found:
        return found
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    uris = set()
    for result in run["results"]:
        if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
            found.append("ruleIndex %s is not %s" % (result["ruleIndex"], result["ruleId"]))
        for location in result["locations"]:
            place = location["physicalLocation"]
            uris.add(place["artifactLocation"]["uri"])
            region = place.get("region", {"startLine": 1})
            found += ["%s is %d" % (k, v) for k, v in region.items()
                      if k != "snippet" and v < 1]
            if (region.get("endLine", 1 << 30), region.get("endColumn", 1 << 30)) < (
                    region["startLine"], region.get("startColumn", 1)):
                found.append("a region ends before it begins: %s" % region)
    found += ["%s is no URI reference" % uri for uri in uris if not URI.match(uri)]
    found += ["nothing about %s" % name for name in files
              if name not in ("clean",) and not any(name + "%20%C3%BC.py" in uri for uri in uris)]
    if len({rule["id"] for rule in rules}) != len(rules):
        found.append("rules have the same id")
    return found
