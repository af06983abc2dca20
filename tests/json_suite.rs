//! The JSON reader against JSONTestSuite, against Python, and against a table of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tensorwire::error::{DecodeErrorKind, DecodeErrorKind::*, SyntaxError};
use tensorwire::json::Value;

const END: DecodeErrorKind = Syntax(SyntaxError::UnexpectedEnd);
const CONTROL: DecodeErrorKind = Syntax(SyntaxError::ControlCharacter);
const ESCAPE: DecodeErrorKind = Syntax(SyntaxError::InvalidEscape);
const NUMBER: DecodeErrorKind = Syntax(SyntaxError::InvalidNumber);
const DEPTH: DecodeErrorKind = DepthLimit { limit: 128 };

const fn byte(found: u8) -> DecodeErrorKind {
    Syntax(SyntaxError::UnexpectedByte { found })
}

/// The folder of JSONTestSuite (github.com/nst/JSONTestSuite), which is not part of this repository.
///
/// `JSON_TEST_SUITE` names it; it holds the folder `test_parsing`.
fn suite() -> Option<PathBuf> {
    let named = std::env::var_os("JSON_TEST_SUITE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures/JSONTestSuite");
    let folder = named.unwrap_or(beside);
    if folder.join("test_parsing").is_dir() {
        return Some(folder);
    }
    skip(&format!("no JSONTestSuite at {}", folder.display()));
    None
}

/// Says so to the terminal itself: the harness keeps what a passing test prints.
fn skip(why: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(format!("SKIP: {why}\n").as_bytes());
}

/// The files of the suite whose names begin so.
fn files(folder: &Path, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder.join("test_parsing"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

#[test]
fn strict_json_takes_what_it_must_and_refuses_what_it_must() {
    let Some(folder) = suite() else { return };
    let good = files(&folder, "y_");
    assert_eq!(good.len(), 95);
    for (name, text) in good {
        let result = Value::parse_strict(&text);
        assert!(result.is_ok(), "{name}: {}", result.unwrap_err());
        assert!(Value::parse(&text).is_ok(), "{name}");
    }
    let bad = files(&folder, "n_");
    assert_eq!(bad.len(), 188);
    for (name, text) in bad {
        assert!(Value::parse_strict(&text).is_err(), "{name}");
    }
}

#[test]
fn python_json_takes_three_tokens_more() {
    let Some(folder) = suite() else { return };
    let taken: Vec<_> = files(&folder, "n_")
        .into_iter()
        .filter(|(_, text)| Value::parse(text).is_ok())
        .map(|(name, text)| (name, String::from_utf8(text).unwrap()))
        .collect();
    let expected = [
        ("n_number_NaN.json", "[NaN]"),
        ("n_number_infinity.json", "[Infinity]"),
        ("n_number_minus_infinity.json", "[-Infinity]"),
    ];
    let expected = expected.map(|(name, text)| (name.to_string(), text.to_string()));
    assert_eq!(taken, expected);
}

/// (file, the error or `None` if it is accepted, why); strict JSON makes no difference.
#[rustfmt::skip]
const PINNED: &[(&str, Option<DecodeErrorKind>, &str)] = &[
    ("i_number_double_huge_neg_exp.json", None, "a number is text until it is read; then it is 0.0"),
    ("i_number_huge_exp.json", None, "a number is text; read as f64, infinite as in Python"),
    ("i_number_neg_int_huge_exp.json", None, "a number is text; read as f64, infinite as in Python"),
    ("i_number_pos_double_huge_exp.json", None, "a number is text; read as f64, infinite as in Python"),
    ("i_number_real_neg_overflow.json", None, "a number is text; read as f64, infinite as in Python"),
    ("i_number_real_pos_overflow.json", None, "a number is text; read as f64, infinite as in Python"),
    ("i_number_real_underflow.json", None, "a number is text; read as f64, 0.0 as in Python"),
    ("i_number_too_big_neg_int.json", None, "an integer has no size limit as text"),
    ("i_number_too_big_pos_int.json", None, "an integer has no size limit as text"),
    ("i_number_very_big_negative_int.json", None, "an integer has no size limit as text"),
    ("i_object_key_lone_2nd_surrogate.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_1st_surrogate_but_2nd_missing.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_1st_valid_surrogate_2nd_invalid.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_UTF-16LE_with_BOM.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_UTF-8_invalid_sequence.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_UTF8_surrogate_U+D800.json", Some(InvalidUtf8), "UTF-8 has no surrogates; Python escapes them"),
    ("i_string_incomplete_surrogate_and_escape_valid.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_incomplete_surrogate_pair.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_incomplete_surrogates_escape_valid.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_invalid_lonely_surrogate.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_invalid_surrogate.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_invalid_utf-8.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_inverted_surrogates_U+1D11E.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_iso_latin_1.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_lone_second_surrogate.json", None, "a lone surrogate escape is data, which Python writes"),
    ("i_string_lone_utf8_continuation_byte.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_not_in_unicode_range.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_overlong_sequence_2_bytes.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_overlong_sequence_6_bytes.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_overlong_sequence_6_bytes_null.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_truncated-utf-8.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_utf16BE_no_BOM.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_string_utf16LE_no_BOM.json", Some(InvalidUtf8), "the text is UTF-8"),
    ("i_structure_500_nested_arrays.json", Some(DEPTH), "128 levels are enough, and bound the work"),
    ("i_structure_UTF-8_BOM_empty_object.json", Some(byte(0xef)), "RFC 8259 8.1: a byte order mark is not part of a text"),
];

#[test]
fn what_the_standard_leaves_open_is_pinned() {
    let Some(folder) = suite() else { return };
    let open = files(&folder, "i_");
    assert_eq!(open.len(), 35);
    assert!(PINNED.iter().map(|(name, ..)| *name).eq(open.keys()));
    for (name, expected, why) in PINNED {
        for parse in [Value::parse, Value::parse_strict] {
            let error = parse(&open[*name]).err().map(|error| error.kind());
            assert_eq!(error, *expected, "{name}: {why}");
        }
    }
}

/// (file, what Python says of it, why this reader says otherwise)
#[rustfmt::skip]
const NOT_AS_PYTHON: &[(&str, &str, &str)] = &[
    ("i_string_UTF-16LE_with_BOM.json", "accept", "Python guesses the encoding; here it is UTF-8"),
    ("i_string_UTF8_surrogate_U+D800.json", "accept", "Python decodes surrogates that UTF-8 does not have"),
    ("i_string_utf16BE_no_BOM.json", "accept", "Python guesses the encoding; here it is UTF-8"),
    ("i_string_utf16LE_no_BOM.json", "accept", "Python guesses the encoding; here it is UTF-8"),
    ("i_structure_500_nested_arrays.json", "accept", "Python recurses to about 1000 levels; here 128 are the cap"),
    ("i_structure_UTF-8_BOM_empty_object.json", "accept", "Python drops a byte order mark; here there is none"),
];

#[test]
fn python_agrees_but_for_encodings_and_depth() {
    let Some(folder) = suite() else { return };
    let table = fs::read_to_string(folder.join("python311_json_loads.tsv"));
    let Ok(table) = table else {
        // The suite itself has no such file.
        skip(&format!(
            "no python311_json_loads.tsv in {}",
            folder.display()
        ));
        return;
    };
    let all = files(&folder, "");
    let mut differences = Vec::new();
    assert_eq!(table.lines().count(), 318);
    for line in table.lines() {
        let (name, verdict) = line.split_once('\t').unwrap();
        if Value::parse(&all[name]).is_ok() != (verdict == "accept") {
            differences.push((name.to_string(), verdict.to_string()));
        }
    }
    differences.sort();
    let mut expected: Vec<_> = NOT_AS_PYTHON
        .iter()
        .map(|(name, verdict, _)| (name.to_string(), verdict.to_string()))
        .collect();
    expected.sort();
    assert_eq!(differences, expected);
}

/// Texts that are JSON, to both ways of reading.
#[rustfmt::skip]
const GOOD: &[&[u8]] = &[
    // Literals, alone and with white space.
    b"true", b"false", b"null", b" \t\r\n true \n\r\t ",
    // Numbers.
    b"0", b"-0", b"7", b"-7", b"10", b"1234567890", b"0.0", b"-0.0", b"0.5", b"10.25", b"1e0", b"1E0",
    b"1e+0", b"1E-0", b"1e00", b"0e1", b"-0e-1", b"0.1e2", b"1.5E+300", b"1e999999999999",
    b"123456789012345678901234567890", b"-9223372036854775809", b"0.00000000000000000000000000001", b"\t1 ",
    // Strings.
    br#""""#, br#""a""#, br#"" ""#, br#""\"""#, br#""\\""#, br#""\/""#, br#""\b\f\n\r\t""#, br#""\u0000""#,
    br#""\u007f""#, br#""\uABCD\uabcd""#, br#""\\u0041""#, br#""\\\\""#, br#""\\\"""#, br#""\ud83d\ude00""#,
    br#""\uD83D\uDE00""#, br#""\ud800""#, br#""\udfff""#, br#""\udc00\ud800""#, br#""\ud800\ud800""#,
    br#""\ud800x""#, br#""\ud800\n""#, br#""\ufeff""#, br#""/*""#, br#""'""#, br#""{[]}""#,
    b"\"\x7f\"", b"\"\xc2\x80\"", b"\"\xdf\xbf\"", b"\"\xe0\xa0\x80\"", b"\"\xed\x9f\xbf\"", b"\"\xee\x80\x80\"",
    b"\"\xef\xbb\xbf\"", b"\"\xef\xbf\xbf\"", b"\"\xf0\x90\x80\x80\"", b"\"\xf4\x8f\xbf\xbf\"", b"\"\xe2\x80\xa8\xe2\x80\xa9\"",
    // Around the words of eight bytes that strings are read by.
    b"\"1234567\"", b"\"12345678\"", b"\"123456789\"", b"\"1234567\\n\"", b"\"12345678\\n\"", b"\"123456\xc3\xa98\"",
    // Arrays.
    b"[]", b"[ ]", b"[\n]", b"[0]", b"[1,2]", b" [ 1 , 2 ] ", b"[[]]", b"[[],[]]", b"[null,true,false,\"\",0,{}]", b"[[[[1]]]]",
    // Objects.
    b"{}", b"{ }", br#"{"a":1}"#, br#"{"":0}"#, br#"{ "a" : 1 , "b" : [ ] }"#, br#"{"a":{"b":{}}}"#,
    br#"{"a":1,"a":2}"#, br#"{"a":1,"\u0061":2}"#, br#"{"\ud800":1}"#, br#"[{"a":[{"b":[]}]}]"#, br#"{"a":"b","c":null}"#,
];

/// (text, kind, offset) of texts that are no JSON, to both ways of reading.
#[rustfmt::skip]
const BAD: &[(&[u8], DecodeErrorKind, usize)] = &[
    // Nothing, or not all of it.
    (b"", END, 0), (b" ", END, 1), (b"\n\t\r ", END, 4), (b"t", END, 1), (b"fals", END, 4), (b"nul", END, 3),
    (b"[", END, 1), (b"[1", END, 2), (b"[1,", END, 3), (b"[1 ", END, 3), (b"[[]", END, 3), (b"{", END, 1),
    (br#"{""#, END, 2), (br#"{"a"#, END, 3), (br#"{"a""#, END, 4), (br#"{"a":"#, END, 5), (br#"{"a":1"#, END, 6),
    (br#"{"a":1,"#, END, 7), (br#"{"a":[{"#, END, 7), (b"\"", END, 1), (b"\"abc", END, 4), (b"\"12345678", END, 9),
    (br#""\"#, END, 2), (br#""\""#, END, 3), (br#""\u"#, END, 3), (br#""\u0"#, END, 4), (br#""\u00"#, END, 5), (br#""\u000"#, END, 6),
    (br#""\u0000"#, END, 7), (b"-", END, 1), (b"1.", END, 2), (b"1e", END, 2), (b"1e+", END, 3), (b"-I", END, 2), (b"Na", END, 2),
    // Something else.
    (b",", byte(b','), 0), (b"]", byte(b']'), 0), (b"}", byte(b'}'), 0), (b":", byte(b':'), 0), (b"x", byte(b'x'), 0),
    (b"'a'", byte(b'\''), 0), (b"`", byte(b'`'), 0), (b"\0", byte(0), 0), (b"#", byte(b'#'), 0), (b"/**/1", byte(b'/'), 0), (b"//\n1", byte(b'/'), 0),
    (b"True", byte(b'T'), 0), (b"truE", byte(b'E'), 3), (b"falze", byte(b'z'), 3), (b"nil", byte(b'i'), 1), (b"nan", byte(b'a'), 1),
    (b"inf", byte(b'i'), 0), (b"undefined", byte(b'u'), 0), (b"\x0b1", byte(0x0b), 0), (b"\x0c1", byte(0x0c), 0),
    (b"\xc2\xa01", byte(0xc2), 0), (b"\xe2\x80\xa81", byte(0xe2), 0), (b"\xef\xbb\xbf1", byte(0xef), 0), (b"\xef\xbc\x91", byte(0xef), 0),
    // Numbers.
    (b"01", NUMBER, 1), (b"00", NUMBER, 1), (b"-01", NUMBER, 2), (b"-00", NUMBER, 2), (b"+1", byte(b'+'), 0), (b".5", byte(b'.'), 0), (b"-.5", NUMBER, 1),
    (b"- 1", NUMBER, 1), (b"--1", NUMBER, 1), (b"-+1", NUMBER, 1), (b"-a", NUMBER, 1), (b"-[]", NUMBER, 1), (b"[1.]", NUMBER, 3), (b"1.e1", NUMBER, 2), (b"1.-1", NUMBER, 2),
    (b"1..2", NUMBER, 2), (b"[1e]", NUMBER, 3), (b"1e.5", NUMBER, 2), (b"1ee5", NUMBER, 2), (b"1e++5", NUMBER, 3), (b"[1e-]", NUMBER, 4), (b"1E +5", NUMBER, 2),
    (b"0x10", TrailingData, 1), (b"1_000", TrailingData, 1), (b"1.5.2", TrailingData, 3), (b"1e5.2", TrailingData, 3), (b"1+2", TrailingData, 1), (b"0b1", TrailingData, 1),
    (b"[1x]", byte(b'x'), 2), (b"[0x1]", byte(b'x'), 2), (b"[1 2]", byte(b'2'), 3), (b"[-NaN]", NUMBER, 2),
    (b"-Infinit", END, 8), (b"Infinitx", byte(b'x'), 7), (b"Nan", byte(b'n'), 2), (b"INF", byte(b'N'), 1),
    // Strings.
    (b"\"\0\"", CONTROL, 1), (b"\"a\n\"", CONTROL, 2), (b"\"\t\"", CONTROL, 1), (b"\"\r\"", CONTROL, 1), (b"\"\x1f\"", CONTROL, 1),
    (b"\"12345678\x01\"", CONTROL, 9), (b"\"1234567\x1f\"", CONTROL, 8),
    (br#""\a""#, ESCAPE, 1), (br#""\0""#, ESCAPE, 1), (br#""\x41""#, ESCAPE, 1), (br#""\'""#, ESCAPE, 1), (br#""\U0041""#, ESCAPE, 1), (br#""\N""#, ESCAPE, 1), (b"\"\\\n\"", ESCAPE, 1),
    (br#""\u""#, ESCAPE, 1), (br#""\u00""#, ESCAPE, 1), (br#""\u000g""#, ESCAPE, 1), (br#""\u+041""#, ESCAPE, 1), (br#""\u-041""#, ESCAPE, 1), (br#""\u 041""#, ESCAPE, 1), (br#""\u{41}""#, ESCAPE, 1), (br#""\u00_1""#, ESCAPE, 1),
    (br#""ab\ud83d\u12""#, ESCAPE, 9), (br#""\\\a""#, ESCAPE, 3), (b"\"\\\xc3\xa9\"", ESCAPE, 1), (b"\"\\u\xc3\xa9\xc3\xa9\"", ESCAPE, 1), (b"\"\\u004\xc3\xa9\"", ESCAPE, 1),
    (br#""a"b"#, TrailingData, 3), (br#"""""#, TrailingData, 2), (br#"a"b""#, byte(b'a'), 0),
    // No UTF-8.
    (b"\"\x80\"", InvalidUtf8, 1), (b"\"\xbf\"", InvalidUtf8, 1), (b"\"\xc0\x80\"", InvalidUtf8, 1), (b"\"\xc1\xbf\"", InvalidUtf8, 1), (b"\"\xc3\"", InvalidUtf8, 1), (b"\"\xc3(\"", InvalidUtf8, 1),
    (b"\"\xe0\x80\x80\"", InvalidUtf8, 1), (b"\"\xe0\x9f\xbf\"", InvalidUtf8, 1), (b"\"\xe2\x82\"", InvalidUtf8, 1), (b"\"\xed\xa0\x80\"", InvalidUtf8, 1), (b"\"\xed\xbf\xbf\"", InvalidUtf8, 1),
    (b"\"\xf0\x80\x80\x80\"", InvalidUtf8, 1), (b"\"\xf0\x8f\xbf\xbf\"", InvalidUtf8, 1), (b"\"\xf0\x9f\x98\"", InvalidUtf8, 1), (b"\"\xf4\x90\x80\x80\"", InvalidUtf8, 1), (b"\"\xf5\x80\x80\x80\"", InvalidUtf8, 1), (b"\"\xfe\xff\"", InvalidUtf8, 1),
    (b"\"abc\xff\"", InvalidUtf8, 4), (b"\xff", InvalidUtf8, 0), (b"[1]\xff", InvalidUtf8, 3), (b"{\"\xff\":1}", InvalidUtf8, 2), (b"1\x80", InvalidUtf8, 1), (b"\"\\u00\xff0\"", InvalidUtf8, 5), (b"\"\xe2\x82", InvalidUtf8, 1),
    (b"\xff\xfe1\0", InvalidUtf8, 0), (b"1\0", TrailingData, 1), (b"\x001", byte(0), 0),
    // Arrays.
    (b"[,]", byte(b','), 1), (b"[1,]", byte(b']'), 3), (b"[,1]", byte(b','), 1), (b"[1,,2]", byte(b','), 3), (b"[1;2]", byte(b';'), 2), (b"[1:2]", byte(b':'), 2), (b"[\"a\":1]", byte(b':'), 4),
    (b"[1}", byte(b'}'), 2), (b"[[1]", END, 4), (b"[]]", TrailingData, 2), (b"[1]]", TrailingData, 3), (b"[][]", TrailingData, 2), (b"[1],", TrailingData, 3), (b"[\0]", byte(0), 1), (b"[...]", byte(b'.'), 1), (b"[1 true]", byte(b't'), 3), (b"[/**/]", byte(b'/'), 1),
    // Objects.
    (b"{,}", byte(b','), 1), (b"{1:1}", byte(b'1'), 1), (b"{a:1}", byte(b'a'), 1), (b"{null:1}", byte(b'n'), 1), (b"{[]:1}", byte(b'['), 1), (b"{'a':1}", byte(b'\''), 1), (b"{]", byte(b']'), 1),
    (br#"{"a"}"#, byte(b'}'), 4), (br#"{"a",1}"#, byte(b','), 4), (br#"{"a"=1}"#, byte(b'='), 4), (br#"{"a" 1}"#, byte(b'1'), 5), (br#"{"a"::1}"#, byte(b':'), 5), (br#"{"a":}"#, byte(b'}'), 5), (br#"{"a":,}"#, byte(b','), 5), (br#"{:1}"#, byte(b':'), 1),
    (br#"{"a":1,}"#, byte(b'}'), 7), (br#"{"a":1,,}"#, byte(b','), 7), (br#"{"a":1]"#, byte(b']'), 6), (br#"{"a":1 "b":2}"#, byte(b'"'), 7), (br#"{"a":1;}"#, byte(b';'), 6), (br#"{"a":1,"b"}"#, byte(b'}'), 10), (br#"{"a":1}}"#, TrailingData, 7), (br#"{"a":1}{}"#, TrailingData, 7), (br#"{"a":[}"#, byte(b'}'), 6),
    // Something behind it.
    (b"1 1", TrailingData, 2), (b"1,", TrailingData, 1), (b"true false", TrailingData, 5), (b"truetrue", TrailingData, 4), (b"nulll", TrailingData, 4), (b"1//", TrailingData, 1), (b"1\x0b", TrailingData, 1), (b"1\xc2\xa0", TrailingData, 1), (b"1\xef\xbb\xbf", TrailingData, 1), (b"NaN1", TrailingData, 3),
];

/// (text with Python's tokens, where strict JSON refuses it)
const TOKENS: &[(&str, usize)] = &[
    ("NaN", 0),
    ("Infinity", 0),
    ("-Infinity", 0),
    (" NaN ", 1),
    ("[NaN]", 1),
    ("[1,-Infinity]", 3),
    (r#"{"a":Infinity}"#, 5),
    (r#"{"a":[{"NaN":NaN}]}"#, 13),
];

#[test]
fn every_production_of_the_grammar_is_read() {
    let mut deepest = Vec::from(GOOD);
    let brackets = "[".repeat(128) + &"]".repeat(128);
    let braces = r#"{"a":"#.repeat(127) + "{}" + &"}".repeat(127);
    let mixed = r#"[{"a":"#.repeat(63) + "[{}]" + &"}]".repeat(63);
    let wide = format!("[{}0]", "[[[]]],".repeat(1000));
    deepest.extend([&brackets, &braces, &mixed, &wide].map(|text| text.as_bytes()));
    for text in deepest {
        for parse in [Value::parse, Value::parse_strict] {
            let value = parse(text).unwrap_or_else(|error| panic!("{}: {error}", shown(text)));
            // What is read, read again, is the same.
            let raw = value.raw().as_bytes();
            assert_eq!(&text[value.offset()..][..raw.len()], raw);
            let again = parse(raw).unwrap();
            assert_eq!((again.raw(), again.offset()), (value.raw(), 0));
            walk(value, 0);
        }
    }
}

/// Goes through all of a value, whose parts must be values in turn.
fn walk(value: Value<'_>, depth: usize) {
    assert!(depth < 128);
    if let Ok(array) = value.as_array() {
        for element in array {
            assert!(Value::parse(element.raw().as_bytes()).is_ok());
            walk(element, depth + 1);
        }
    } else if let Ok(object) = value.as_object() {
        for (key, member) in object {
            assert!(object.iter().any(|(other, _)| other == key));
            walk(member, depth + 1);
        }
    } else if let Ok(text) = value.as_str() {
        assert!(text.code_points().count() <= text.raw().len());
    } else if let Ok(number) = value.as_f64() {
        assert!(!number.is_nan());
    }
}

#[test]
fn whatever_is_no_json_is_refused_where_it_goes_wrong() {
    assert!(GOOD.len() + BAD.len() + TOKENS.len() > 250);
    let mut wrong = Vec::new();
    for &(text, kind, offset) in BAD {
        for (strict, result) in [
            (false, Value::parse(text)),
            (true, Value::parse_strict(text)),
        ] {
            let found = result.err().map(|error| (error.kind(), error.offset()));
            // Strict JSON stops at a token in front of what is wrong.
            let token = strict && text.starts_with(b"NaN");
            let expected = if token {
                (NonFinite, 0)
            } else {
                (kind, offset)
            };
            if found != Some(expected) {
                wrong.push(format!("{}: {found:?}, not {expected:?}", shown(text)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nesting_is_cut_at_one_level_over_128() {
    // (text, offset of level 129)
    let cases = [
        ("[".repeat(129) + &"]".repeat(129), 128),
        ("[".repeat(100_000), 128),
        (r#"{"a":"#.repeat(128) + "{}" + &"}".repeat(128), 5 * 128),
        (r#"[{"a":"#.repeat(64) + "[]" + &"}]".repeat(64), 6 * 64),
        ("[".repeat(128) + "{", 128),
        (format!("[[],{}", "[".repeat(128)), 4 + 127),
    ];
    for (text, offset) in cases {
        let error = Value::parse(text.as_bytes()).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (DEPTH, offset));
        assert_eq!(Value::parse_strict(text.as_bytes()).unwrap_err(), error);
    }
}

#[test]
fn strict_json_alone_refuses_the_three_tokens() {
    for (text, offset) in TOKENS {
        assert!(Value::parse(text.as_bytes()).is_ok(), "{text}");
        let error = Value::parse_strict(text.as_bytes()).unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (NonFinite, *offset),
            "{text}"
        );
    }
}

/// Every text of up to four tokens, against serde_json.
#[test]
fn every_short_text_is_judged_as_serde_json_judges_it() {
    const TOKENS: &[&str] = &[
        "[", "]", "{", "}", ",", ":", "\"a\"", "1", "true", " ", "-", "0", ".",
    ];
    let mut accepted = 0;
    for length in 0..=4_u32 {
        for number in 0..TOKENS.len().pow(length) {
            let token = |digit| TOKENS[number / TOKENS.len().pow(digit) % TOKENS.len()];
            let text: String = (0..length).map(token).collect();
            let mine = Value::parse(text.as_bytes()).is_ok();
            assert_eq!(
                mine,
                serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(),
                "{text}"
            );
            accepted += usize::from(mine);
        }
    }
    assert!(accepted > 100, "{accepted}");
}

fn shown(text: &[u8]) -> String {
    text.iter()
        .take(40)
        .flat_map(|byte| byte.escape_ascii())
        .map(char::from)
        .collect()
}
