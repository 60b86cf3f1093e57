#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Stands in files and on terminals in place of a secret.
inline constexpr std::string_view redaction = "[redacted]";

/// Whether `text`, under that name, must not be written. Names go by their words (split at _ - .
/// and between `a` and `B`): password, passphrase, secret, credential, api key, access token and
/// their like always; another key or token only where the text looks random (16 characters or more,
/// three digits, no path), so that `image_key: alpha` and `pad_token: <pad>` stay. Paths of files
/// are none, nor is what a name says to be a file, path, folder, name or variable.
bool is_secret(std::string_view name, std::string_view text);

/// `text` with the user's part of URLs (https://user:PASSWORD@host, https://TOKEN@host) redacted.
std::string redact_urls(std::string_view text);

/// `text` for an error message or file: secrets in URLs are redacted, and what environment
/// variables of secret names hold (8 bytes or more).
std::string redact_text(std::string_view text);

}  // namespace muster
