#include "tests/base/expect_error.h"

#include <muster/base/digest.h>
#include <muster/base/text.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

using Names = std::vector<std::string>;

const std::string kBad = "\xef\xbf\xbd";

TEST(ClosestName, FindsATypingError) {
  const Names keys{"trainer.limit_train_batches", "trainer.limit_val_batches", "trainer.max_epochs",
                   "model.lr", "data.batch_size"};
  EXPECT_EQ(closest_name("trainer.limit_val_batchs", keys), "trainer.limit_val_batches");
  EXPECT_EQ(closest_name("trainer.limit_va_batches", keys), "trainer.limit_val_batches");
  EXPECT_EQ(closest_name("trainer.max_epcohs", keys), "trainer.max_epochs");
  EXPECT_EQ(closest_name("data.batchsize", keys), "data.batch_size");
  EXPECT_EQ(closest_name("modle.lr", keys), "model.lr");
}

TEST(ClosestName, FindsANameWithoutOrWithAnotherBeginning) {
  const Names keys{"trainer.limit_val_batches", "model.lr"};
  EXPECT_EQ(closest_name("limit_val_batches", keys), "trainer.limit_val_batches");
  EXPECT_EQ(closest_name("limit_val_batch", keys), "trainer.limit_val_batches");
  EXPECT_EQ(closest_name("trainer.lr", keys), "model.lr");
  EXPECT_EQ(closest_name("lr", keys), "model.lr");
  EXPECT_EQ(closest_name("model.lr", Names{"lr"}), "lr");
}

TEST(ClosestName, CountsASwapAsOneEditAndCaseAsHalfAnEdit) {
  EXPECT_EQ(closest_name("abdc", Names{"abxy", "abcd"}), "abcd");
  EXPECT_EQ(closest_name("Seed", Names{"feed", "seed"}), "seed");
  EXPECT_EQ(closest_name("fit", Names{"fix", "fitt", "FIT"}), "fix");  // one edit, before 1.5
  EXPECT_EQ(closest_name("fit", Names{"Fit", "fix"}), "Fit");
}

TEST(ClosestName, TakesTheFirstOfEquallyNearOnes) {
  EXPECT_EQ(closest_name("cat", Names{"bat", "hat"}), "bat");
  EXPECT_EQ(closest_name("cat", Names{"hat", "bat"}), "hat");
}

TEST(ClosestName, IsEmptyWhereNothingIsNear) {
  const Names keys{"lr", "fit", "trainer.max_epochs"};
  EXPECT_EQ(closest_name("xy", keys), "");
  EXPECT_EQ(closest_name("completely.different", keys), "");
  EXPECT_EQ(closest_name("", keys), "");
  EXPECT_EQ(closest_name("fit", Names{}), "");
  EXPECT_EQ(closest_name("trainer.", keys), "");
  EXPECT_EQ(closest_name(std::string(5000, 'a'), keys), "");
}

TEST(ValidUtf8, KeepsWhatIsWellFormed) {
  for (const std::string text :
       {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x99\x82", "\x7f\xc2\x80",
        "\xed\x9f\xbf\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
  const std::string with_zero{"a\0b", 3};
  EXPECT_EQ(valid_utf8(with_zero), with_zero);
}

TEST(ValidUtf8, ReplacesEachByteThatIsNoPartOfACharacter) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a" + kBad + "b");
  EXPECT_EQ(valid_utf8("\x80"), kBad);
  EXPECT_EQ(valid_utf8("\xc3"), kBad);
  EXPECT_EQ(valid_utf8("\xc3"
                       "a"),
            kBad + "a");
  EXPECT_EQ(valid_utf8("\xe2\x82"), kBad + kBad);
  EXPECT_EQ(valid_utf8("\xe2\x82"
                       "a"),
            kBad + kBad + "a");
  EXPECT_EQ(valid_utf8("\xf0\x9f\x99"), kBad + kBad + kBad);
}

TEST(ValidUtf8, ReplacesOverlongFormsSurrogatesAndWhatLiesBeyondUnicode) {
  EXPECT_EQ(valid_utf8("\xc0\xaf"), kBad + kBad);
  EXPECT_EQ(valid_utf8("\xc1\xbf"), kBad + kBad);
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf"), kBad + kBad + kBad);
  EXPECT_EQ(valid_utf8("\xf0\x80\x80\xaf"), kBad + kBad + kBad + kBad);
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), kBad + kBad + kBad);
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), kBad + kBad + kBad + kBad);
  EXPECT_EQ(valid_utf8("\xf5\x80\x80\x80"), kBad + kBad + kBad + kBad);
}

bool is_safe(const std::string& name, size_t max_length) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"._%-"}.find(c) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '.' && name.size() <= max_length &&
         std::all_of(name.begin(), name.end(), allowed);
}

TEST(SafeFileName, KeepsNoWayOutOfItsFolder) {
  EXPECT_EQ(safe_file_name("portrait_01-b.png"), "portrait_01-b.png");
  EXPECT_EQ(safe_file_name("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
  EXPECT_EQ(safe_file_name(".hidden"), "%2Ehidden");
  EXPECT_EQ(safe_file_name("."), "%2E");
  EXPECT_EQ(safe_file_name(".."), "%2E.");
  EXPECT_EQ(safe_file_name("a b\\c:d%"), "a%20b%5Cc%3Ad%25");
  EXPECT_EQ(safe_file_name("gr\xc3\xbcn"), "gr%C3%BCn");
  EXPECT_EQ(safe_file_name(std::string{"a\0b", 3}), "a%00b");
}

TEST(SafeFileName, IsNeverEmpty) {
  EXPECT_TRUE(is_safe(safe_file_name(""), 180));
  EXPECT_NE(safe_file_name(""), safe_file_name("%"));
}

TEST(SafeFileName, CutsLongTextsAndKeepsThemApart) {
  const std::string text(300, 'a');
  const std::string first = safe_file_name(text + "1");
  const std::string second = safe_file_name(text + "2");
  EXPECT_EQ(first.size(), 180U);
  EXPECT_EQ(first.substr(0, 100), second.substr(0, 100));
  EXPECT_NE(first, second);
  EXPECT_TRUE(is_safe(first, 180));
  EXPECT_EQ(safe_file_name(std::string(180, 'a')), std::string(180, 'a'));
  EXPECT_NE(safe_file_name(first), safe_file_name(safe_file_name(text + "1") + "x"));
}

TEST(SafeFileName, GivesDifferentNamesToDifferentTextsOfEveryLength) {
  std::set<std::string> names;
  size_t texts = 0;
  for (const std::string unit : {"a", "\xc3\xbc", ".", "a/"}) {
    std::string text;
    for (int length = 0; length < 120; ++length) {
      text += unit;
      const std::string name = safe_file_name(text, 40);
      ASSERT_TRUE(is_safe(name, 40)) << name;
      names.insert(name);
      ++texts;
    }
  }
  EXPECT_EQ(names.size(), texts);
  // The name of a text that was cut is no name of a text that was not.
  const std::string cut = safe_file_name(std::string(50, 'a'), 40);
  EXPECT_NE(safe_file_name(cut, 200), cut);
}

TEST(SafeFileName, TearsNoEscapeApart) {
  for (size_t most = 40; most < 44; ++most) {
    const std::string name = safe_file_name("a" + std::string(100, '/'), most);
    const std::string kept = name.substr(0, name.rfind('%'));
    EXPECT_EQ((kept.size() - 1) % 3, 0U) << name;
    EXPECT_LE(name.size(), most);
  }
}

TEST(SafeFileName, NeedsRoomForADigest) {
  EXPECT_EQ(test::error_of([] { safe_file_name("a", 39); }).kind(), ErrorKind::usage);
}

TEST(EscapeHtml, EscapesWhatCouldLeaveTextOrAttribute) {
  EXPECT_EQ(escape_html("<img src=\"x\" onerror='y'>&amp;"),
            "&lt;img src=&quot;x&quot; onerror=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_html("gr\xc3\xbcn\xff"), "gr\xc3\xbcn" + kBad);
  EXPECT_EQ(escape_html(""), "");
}

TEST(CsvText, QuotesWhatRfc4180AsksFor) {
  EXPECT_EQ(csv_text("plain text"), "plain text");
  EXPECT_EQ(csv_text(""), "");
  EXPECT_EQ(csv_text("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_text("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_text("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_text("two\r\nlines"), "\"two\r\nlines\"");
}

TEST(CsvText, DisarmsFormulas) {
  EXPECT_EQ(csv_text("=1+1"), "'=1+1");
  EXPECT_EQ(csv_text("+1"), "'+1");
  EXPECT_EQ(csv_text("-1"), "'-1");
  EXPECT_EQ(csv_text("@a"), "'@a");
  EXPECT_EQ(csv_text("\tx"), "'\tx");
  EXPECT_EQ(csv_text("\rx"), "\"'\rx\"");
  EXPECT_EQ(csv_text("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
  EXPECT_EQ(csv_text("a=1"), "a=1");
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace muster
