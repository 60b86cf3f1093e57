#include <muster/base/redact.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace muster {

namespace {

constexpr auto npos = std::string_view::npos;

// As the end of a word too: PGPASSWORD, apikey.
constexpr std::array secret_words{"password", "passwords",  "passwd",      "passphrase", "secret",
                                  "secrets",  "credential", "credentials", "apikey",     "apikeys"};
constexpr std::array key_words{"key", "keys", "token", "tokens"};
constexpr std::array secret_kinds{"access",  "account", "api",     "auth",       "aws",
                                  "azure",   "bearer",  "deploy",  "encryption", "github",
                                  "gitlab",  "hf",      "mlflow",  "openai",     "private",
                                  "refresh", "session", "signing", "ssh",        "wandb"};
// Last words of names that say where a secret is, not what it is.
constexpr std::array places{"dir", "env", "file", "folder", "name", "path"};

template <typename Words>
bool among(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words{""};
  char before = '_';
  for (const char c : name) {
    const bool begins = !is_letter(c) || (is_upper(c) && is_letter(before) && !is_upper(before));
    if (begins && !words.back().empty()) {
      words.emplace_back();
    }
    if (is_letter(c)) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    before = c;
  }
  if (words.back().empty()) {
    words.pop_back();
  }
  return words;
}

bool ends_with_one_of(std::string_view word, const auto& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [word](std::string_view end) { return word.ends_with(end); });
}

/// A file's path, which tells where a secret is.
bool is_path(std::string_view text) {
  const bool begins = text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
                      text.starts_with("~/");
  return begins && text.find('.', text.rfind('/')) != npos;
}

bool looks_random(std::string_view text) {
  constexpr size_t fewest = 16;
  constexpr auto fewest_of_a_kind = 3;
  const auto is_usual = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view{"_+/=.:~-"}.find(c) != npos;
  };
  const bool is_file = text.find('/') != npos && text.find('.') != npos;
  return text.size() >= fewest && !is_file && text[0] != '/' && text[0] != '~' &&
         std::all_of(text.begin(), text.end(), is_usual) &&
         std::count_if(text.begin(), text.end(), is_digit) >= fewest_of_a_kind &&
         std::count_if(text.begin(), text.end(), is_letter) >= fewest_of_a_kind;
}

void replace_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + redaction.size())) {
    text.replace(at, part.size(), redaction);
  }
}

/// "user:password", and a name alone where it is a token: ssh://git@host is no secret.
bool is_secret_user(std::string_view before, std::string_view user) {
  const size_t letters =
      before.find_last_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  const auto scheme = before.substr(letters == npos ? 0 : letters + 1);
  const bool is_web = scheme.size() >= 4 && words_of(scheme)[0].starts_with("http");
  return !user.empty() && (user.find(':') != npos || is_web);
}

}  // namespace

bool is_secret(std::string_view name, std::string_view text) {
  const auto words = words_of(name);
  if (text.empty() || words.empty() || among(places, words.back()) || is_path(text)) {
    return false;
  }
  bool secret = words.size() == 1 && words[0] == "token";
  bool may_be_one = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool key = among(key_words, words[i]) || words[i].ends_with("token");
    secret = secret || ends_with_one_of(words[i], secret_words) ||
             (key && i > 0 && among(secret_kinds, words[i - 1]));
    may_be_one = may_be_one || key;
  }
  return secret || (may_be_one && looks_random(text));
}

std::string redact_urls(std::string_view text) {
  constexpr std::string_view mark = "://";
  std::string out;
  for (size_t at = text.find(mark); at != npos; at = text.find(mark)) {
    const size_t begin = at + mark.size();
    const size_t end = std::min(text.find_first_of("/?# \t\r\n\"'<>", begin), text.size());
    const size_t user_end = text.substr(0, end).rfind('@');
    if (user_end == npos || user_end < begin) {
      out += text.substr(0, begin);
      text.remove_prefix(begin);
      continue;
    }
    const auto user = text.substr(begin, user_end - begin);
    out += text.substr(0, begin);
    out += is_secret_user(text.substr(0, at), user) ? redaction : user;
    text.remove_prefix(user_end);
  }
  return out.append(text);
}

std::string redact_text(std::string_view text) {
  constexpr size_t fewest = 8;
  std::string out = redact_urls(text);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable{*entry};
    const size_t equals = std::min(variable.find('='), variable.size() - 1);
    const auto content = variable.substr(equals + 1);
    if (content.size() >= fewest && is_secret(variable.substr(0, equals), content)) {
      replace_all(out, content);
    }
  }
  return out;
}

}  // namespace muster
