#pragma once

#include <muster/value/path.h>
#include <muster/value/value.h>

namespace muster {

/// `config` as it may be written: texts and numbers that are secrets by the name of their key (see
/// muster/base/redact.h; in a list by that of the list, and everything within a dict that is named
/// a secret) stand as "[redacted]", and so do secrets in URLs.
Value redacted(const Value& config);

/// Error of kind `usage` that names the place where a text of `given` holds "[redacted]": it was
/// read from what a run has written, and the value itself has to be given again.
void check_not_redacted(const Value& given, const ValuePath& path);

}  // namespace muster
