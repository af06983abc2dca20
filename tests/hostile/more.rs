//! More of the same kinds. In a text, `|` marks the offset of the error, and `@`
//! stands for the members of a good descriptor.

use std::borrow::Cow;

use super::*;

pub(crate) const PLAIN: &str = r#""field_name":"x","shape":[1],"dtype":"uint8""#;

/// The metadata that `text` stands for, and the offset that it marks.
fn marked(text: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut metadata = Vec::new();
    let mut offset = None;
    for &byte in text {
        match byte {
            b'|' => assert_eq!(offset.replace(metadata.len()), None, "two marks"),
            b'@' => metadata.extend(PLAIN.as_bytes()),
            _ => metadata.push(byte),
        }
    }
    (metadata, offset)
}

pub(crate) const END: DecodeErrorKind = Syntax(SyntaxError::UnexpectedEnd);
const CONTROL: DecodeErrorKind = Syntax(SyntaxError::ControlCharacter);
const ESCAPE: DecodeErrorKind = Syntax(SyntaxError::InvalidEscape);
const NUMBER: DecodeErrorKind = Syntax(SyntaxError::InvalidNumber);

const fn byte(found: u8) -> DecodeErrorKind {
    Syntax(SyntaxError::UnexpectedByte { found })
}

const fn wrong(expected: ValueType, actual: ValueType) -> DecodeErrorKind {
    WrongType { expected, actual }
}

/// (the whole metadata, its error and the descriptor; `None` if it is accepted)
type Case<'a> = (&'a [u8], Option<(DecodeErrorKind, Option<usize>)>);

#[rustfmt::skip]
const WHOLE: &[Case<'_>] = &[
    // Too short.
    (b" \t\r\n|", Some((END, None))),
    (b"{|", Some((END, None))),
    (br#"{"|"#, Some((END, None))),
    (br#"{"a|"#, Some((END, None))),
    (br#"{"a\|"#, Some((END, None))),
    (br#"{"a\u00|"#, Some((END, None))),
    (br#"{"a"|"#, Some((END, None))),
    (br#"{"a":|"#, Some((END, None))),
    (br#"{"a":1|"#, Some((END, None))),
    (br#"{"a":1,|"#, Some((END, None))),
    (br#"{"tensor_descriptors"|"#, Some((END, None))),
    (br#"{"tensor_descriptors":|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[|"#, Some((END, Some(0)))),
    (br#"{"tensor_descriptors":[]|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[{@}|"#, Some((END, None))),
    (br#"{"tensor_descriptors":[{@},|"#, Some((END, Some(1)))),
    (br#"{"tensor_descriptors":[{@|"#, Some((END, Some(0)))),
    // Another byte than there can be.
    (b"|x", Some((byte(b'x'), None))),
    (b"|\0", Some((byte(0), None))),
    (b"{|,}", Some((byte(b','), None))),
    (b"{|1:2}", Some((byte(b'1'), None))),
    (b"{|'a':1}", Some((byte(b'\''), None))),
    (br#"{|tensor_descriptors:[]}"#, Some((byte(b't'), None))),
    (br#"{|/**/"tensor_descriptors":[]}"#, Some((byte(b'/'), None))),
    (br#"{"a"|1}"#, Some((byte(b'1'), None))),
    (br#"{"a":|}"#, Some((byte(b'}'), None))),
    (br#"{"a":1|]"#, Some((byte(b']'), None))),
    (br#"{"a":1 |"b":2}"#, Some((byte(b'"'), None))),
    (br#"{"a":1,|,"b":2}"#, Some((byte(b','), None))),
    (br#"{"a":[1|}"#, Some((byte(b'}'), None))),
    (br#"{"tensor_descriptors":[|,]}"#, Some((byte(b','), Some(0)))),
    (br#"{"tensor_descriptors":[{@},|]}"#, Some((byte(b']'), Some(1)))),
    (br#"{"tensor_descriptors":[{@}|{@}]}"#, Some((byte(b'{'), None))),
    (br#"{"tensor_descriptors":[{@}|}}"#, Some((byte(b'}'), None))),
    (b"{|\xef\xbb\xbf\"tensor_descriptors\":[]}", Some((byte(0xef), None))),
    (b"{|\xc2\xa0\"tensor_descriptors\":[]}", Some((byte(0xc2), None))),
    (b"{|\x0c\"tensor_descriptors\":[]}", Some((byte(0x0c), None))),
    // Something behind it.
    (br#"{"tensor_descriptors":[]}|}"#, Some((TrailingData, None))),
    (br#"{"tensor_descriptors":[]} |{"tensor_descriptors":[]}"#, Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}\n|\0", Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}|\xc2\xa0", Some((TrailingData, None))),
    (b"{\"tensor_descriptors\":[]}|\xe2\x80\xa8", Some((TrailingData, None))),
    (br#"{"a":1}|x"#, Some((TrailingData, None))),
    // No UTF-8, anywhere.
    (b"|\xff", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[]}|\xe2\x82", Some((InvalidUtf8, None))),
    (b"{\"|\xe2\x82\":1,\"tensor_descriptors\":[]}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[{@,\"a\":\"|\xf0\x9f\x98\"}]}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xed\xa0\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xf4\x90\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xe0\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\xf0\x80\x80\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"|\x80\"}}", Some((InvalidUtf8, None))),
    (b"{\"tensor_descriptors\":[],\"scalar_fields\":{\"a\":\"\xe2\x82\xac|\xff\"}}", Some((InvalidUtf8, None))),
    // The encoding is checked first: of two faults it is the one.
    (b"{,\"|\xff\"}", Some((InvalidUtf8, None))),
    // The first byte says which type a value has, or fails to have.
    (b"|tensor", Some((wrong(ValueType::Object, ValueType::Bool), None))),
    (br#"{"tensor_descriptors":|-}"#, Some((wrong(ValueType::Array, ValueType::Number), None))),
    // Keys that are missing, given twice, or only look like it.
    (b"|{}", Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#" |{"scalar_fields":{}}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"Tensor_descriptors":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"tensor_descriptors\u0000":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"tensor_descriptor":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{" tensor_descriptors":[]}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"|{"scalar_fields":{"tensor_descriptors":[]}}"#, Some((MissingKey(SchemaKey::TensorDescriptors), None))),
    (br#"{"tensor_descriptors":[],|"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"tensor_descriptors":[],|"tensor\u005fdescriptors":null}"#, Some((DuplicateKey, None))),
    (br#"{"\u0074ensor_descriptors":[],"a":1, |"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"scalar_fields":{},"tensor_descriptors":[],|"scalar_fields":{}}"#, Some((DuplicateKey, None))),
    (br#"{"scalar_fields":{},|"scalar_field\u0073":{},"tensor_descriptors":[]}"#, Some((DuplicateKey, None))),
    (br#"{"a":1,"a":2,"tensor_descriptors":[],"\u0061":3}"#, None),
    (br#"{"\u0074\u0065\u006e\u0073\u006F\u0072\u005f\u0064escriptors":[],"scalar\u005ffields":{}}"#, None),
    // Python's tokens, outside the scalars.
    (br#"{"a":|NaN,"tensor_descriptors":[]}"#, Some((NonFinite, None))),
    (br#"{"tensor_descriptors":[],"a":[{"b":|-Infinity}]}"#, Some((NonFinite, None))),
    (br#"{"tensor_descriptors":[{@,"a":|Infinity}]}"#, Some((NonFinite, Some(0)))),
    (b"|NaN", Some((wrong(ValueType::Object, ValueType::Number), None))),
    (br#"{"tensor_descriptors":|NaN}"#, Some((wrong(ValueType::Array, ValueType::Number), None))),
    // White space wherever it can stand.
    (b" {\n\"tensor_descriptors\" :\t[ { \"field_name\" : \"x\" , \"shape\" : [ 1 , 1 ] ,\r\n\"dtype\" : \"uint8\" , \"list_index\" : -1 } ] , \"scalar_fields\" : { } } ", None),
    (b"{\"tensor_descriptors\":[ ],\"scalar_fields\":{\t}}", None),
    (br#"{"scalar_fields":{"a":[1,{"b":null}]},"x":true,"tensor_descriptors":[{@,"list_index":0},{"dtype":"uint8","list_index":1,"shape":[],"field_name":"x"}]}"#, None),
];

/// Lists of descriptors.
#[rustfmt::skip]
const DESCRIPTORS: &[Case<'_>] = &[
    (b"|{}", Some((MissingKey(SchemaKey::FieldName), Some(0)))),
    (br#"|{"shape":[1],"dtype":"uint8"}"#, Some((MissingKey(SchemaKey::FieldName), Some(0)))),
    (br#"{@}, |{"field_name":"y","dtype":"uint8"}"#, Some((MissingKey(SchemaKey::Shape), Some(1)))),
    (br#"|{"field_name":"x","shape":[1],"list_index":-1}"#, Some((MissingKey(SchemaKey::DType), Some(0)))),
    (br#"|{"field_name":"x","Shape":[1],"dtype":"uint8"}"#, Some((MissingKey(SchemaKey::Shape), Some(0)))),
    (br#"{@,|"field_name":"x"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"shape":[1]}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"dtype":"uint8"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"list_index":-1,|"list_index":-1}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"\u0066ield_name":"y"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"s\u0068ape":[2]}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,|"dtyp\u0065":"int8"}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"list\u005findex":0,|"list_index":1}"#, Some((DuplicateKey, Some(0)))),
    (br#"{@,"a":1,"a":2}"#, None),
    // Dimensions.
    (br#"{"field_name":"x","shape":[|1.5],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|1e0],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|1E400],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[1,|-0],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|-9223372036854775809],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|NaN],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[2,|-Infinity],"dtype":"uint8"}"#, Some((BadDim, Some(0)))),
    (br#"{"field_name":"x","shape":[|[1]],"dtype":"uint8"}"#, Some((wrong(ValueType::Number, ValueType::Array), Some(0)))),
    (br#"{"field_name":"x","shape":[|{}],"dtype":"uint8"}"#, Some((wrong(ValueType::Number, ValueType::Object), Some(0)))),
    (br#"{"field_name":"x","shape":[0|0],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[-0|1],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[1.|],"dtype":"uint8"}"#, Some((NUMBER, Some(0)))),
    (br#"{"field_name":"x","shape":[0|x1],"dtype":"uint8"}"#, Some((byte(b'x'), Some(0)))),
    (br#"{"field_name":"x","shape":[1|_000],"dtype":"uint8"}"#, Some((byte(b'_'), Some(0)))),
    (br#"{"field_name":"x","shape":[|+1],"dtype":"uint8"}"#, Some((byte(b'+'), Some(0)))),
    (br#"{"field_name":"x","shape":[|.5],"dtype":"uint8"}"#, Some((byte(b'.'), Some(0)))),
    (br#"{"field_name":"x","shape":[1,|],"dtype":"uint8"}"#, Some((byte(b']'), Some(0)))),
    (br#"{"field_name":"x","shape":[|,1],"dtype":"uint8"}"#, Some((byte(b','), Some(0)))),
    (br#"{"field_name":"x","shape":[1|;2],"dtype":"uint8"}"#, Some((byte(b';'), Some(0)))),
    (br#"{"field_name":"x","shape":[1 |2],"dtype":"uint8"}"#, Some((byte(b'2'), Some(0)))),
    (br#"{"field_name":"x","shape":[1|},"dtype":"uint8"}"#, Some((byte(b'}'), Some(0)))),
    (br#"{"field_name":"x","shape":[|9223372036854775808],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[0,|18446744073709551615],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|99999999999999999999999999999999999999999999999999],"dtype":"uint8"}"#, Some((DimOverflow, Some(0)))),
    // Sizes at `isize::MAX`, which is 7 * 7 * 73 * 127 * 337 * 92737 * 649657.
    (br#"{"field_name":"x","shape":[9223372036854775807],"dtype":"uint8"}"#, None),
    (br#"{"field_name":"x","shape":[7,7,73,127,337,92737,649657,1],"dtype":"bool","list_index":-1}"#, None),
    (br#"{"field_name":"x","shape":[0,9223372036854775807],"dtype":"int8"}"#, None),
    (br#"{"field_name":"x","shape":[4611686018427387903],"dtype":"float16"}"#, None),
    (br#"{"field_name":"x","shape":[|4611686018427387904],"dtype":"float16"}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|4294967296,2147483648],"dtype":"uint8","list_index":-1}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|0,9223372036854775807],"dtype":"int16","list_index":-1}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"field_name":"x","shape":[|9223372036854775807,0,2],"dtype":"int8"}"#, Some((ShapeOverflow, Some(0)))),
    (br#"{"dtype":"complex128","shape":[ 576460752303423487 ],"field_name":"x"}"#, None),
    (br#"{"dtype":"complex128","shape":[|576460752303423488],"field_name":"x"}"#, Some((ShapeOverflow, Some(0)))),
    // Dtypes.
    (br#"{"field_name":"x","shape":[1],"dtype":|"Float32"}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"float32 ","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"float32\u0000","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"\ud800","list_index":-1}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":|"\u0066\u006c\u006f\u0061\u0074\u0038\u005f\u0065\u0034\u006d\u0033\u0066\u006e\u0075\u007a\u007a"}"#, Some((UnknownDType, Some(0)))),
    (br#"{"field_name":"x","shape":[1],"dtype":"\u0066\u006c\u006f\u0061\u0074\u0038\u005f\u0065\u0034\u006d\u0033\u0066\u006e\u0075\u007a"}"#, None),
    (b"{\"field_name\":\"x\",\"shape\":[1],\"dtype\":|\"f\xc3\xb6oat32\"}", Some((UnknownDType, Some(0)))),
    // List indices.
    (br#"{@,"list_index":|-2}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-10}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|1.0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|1e0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-1e0}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":|-Infinity}"#, Some((BadListIndex, Some(0)))),
    (br#"{@,"list_index":0|0}"#, Some((NUMBER, Some(0)))),
    (br#"{@,"list_index":-|}"#, Some((NUMBER, Some(0)))),
    (br#"{@,"list_index":|}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@,"list_index":-1|x}"#, Some((byte(b'x'), Some(0)))),
    (br#"{@,"list_index":|4097}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":|4294967296}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":|340282366920938463463374607431768211456}"#, Some((ListIndexLimit { limit: 4096 }, Some(0)))),
    (br#"{@,"list_index":4096}"#, None),
    // Names.
    (br#"{"field_name":|"\udc00\ud800","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":|"a\ud83d","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":|"\ud83d\u0041","shape":[1],"dtype":"uint8"}"#, Some((InvalidName, Some(0)))),
    (br#"{"field_name":"\ud83d\ude00","shape":[1],"dtype":"uint8"}"#, None),
    (br#"{"field_name":"","shape":[1],"dtype":"uint8","list_index":-1}"#, None),
    (b"{\"field_name\":\"\xf0\x9f\x98\x80\x7f\",\"shape\":[1],\"dtype\":\"uint8\",\"list_index\":-1}", None),
    (b"{\"field_name\":\"a|\0\",\"shape\":[1],\"dtype\":\"uint8\"}", Some((CONTROL, Some(0)))),
    (b"{\"field_name\":\"a|\x1f\",\"shape\":[1],\"dtype\":\"uint8\"}", Some((CONTROL, Some(0)))),
    (br#"{"field_name":"a|\'","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    (br#"{"field_name":"a|\uD80G","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    (br#"{"field_name":"a|\U0041","shape":[1],"dtype":"uint8"}"#, Some((ESCAPE, Some(0)))),
    // Places.
    (br#"{@},|{"field_name":"\u0078","shape":[1],"dtype":"int8"}"#, Some((DuplicateField, Some(1)))),
    (br#"{@},{"field_name":"y","shape":[1],"dtype":"int8"},|{@}"#, Some((DuplicateField, Some(2)))),
    (br#"{@,"list_index":7},{@,"list_index":3},|{@,"list_index":7}"#, Some((DuplicateListIndex { list_index: 7 }, Some(2)))),
    (br#"{@,"list_index":5},|{@},{@,"list_index":0}"#, Some((MixedField, Some(1)))),
    (br#"{@},|{@,"list_index":3},{@,"list_index":1}"#, Some((MixedField, Some(1)))),
    (br#"{@,"list_index":0},{@,"list_index":1},{@,"list_index":2},|{@}"#, Some((MixedField, Some(3)))),
    (br#"{@},|{@},{@,"list_index":0}"#, Some((DuplicateField, Some(1)))),
    (br#"{@},{"field_name":"X","shape":[1],"dtype":"int8"},{"field_name":"x ","shape":[1],"dtype":"int8"},{"field_name":"x\u0000","shape":[1],"dtype":"int8"}"#, None),
    // Keys that are not of the schema.
    (br#"{@,"strides":[1,{"a":nul|}]}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@,"device":"cuda:0","strides":[1,{"a":[]}],"":null}"#, None),
    (br#"{|,@}"#, Some((byte(b','), Some(0)))),
    (br#"{@,|}"#, Some((byte(b'}'), Some(0)))),
    (br#"{@ |"a":1}"#, Some((byte(b'"'), Some(0)))),
];

/// Values of `scalar_fields`.
#[rustfmt::skip]
const SCALARS: &[Case<'_>] = &[
    (br#"{"a":1,"a":2,"\u0061":3}"#, None),
    (br#"{"\ud800":"\udfff","":""}"#, None),
    (br#"{"a":"\"\\\/\b\f\n\r\t\u0000\uFFFF"}"#, None),
    (b"{\"a\":\"\x7f\xc2\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"}", None),
    (br#"{"a":[NaN,[-Infinity],{"b":Infinity}]}"#, None),
    (br#"{"a":-0,"b":-0.0e-0,"c":1E+400,"d":123456789012345678901234567890}"#, None),
    (br#"{"a":Na|n}"#, Some((byte(b'n'), None))),
    (br#"{"a":n|an}"#, Some((byte(b'a'), None))),
    (br#"{"a":-|NaN}"#, Some((NUMBER, None))),
    (br#"{"a":|+Infinity}"#, Some((byte(b'+'), None))),
    (br#"{"a":Infinit|}"#, Some((byte(b'}'), None))),
    (br#"{"a":-Inf|}"#, Some((byte(b'}'), None))),
    (br#"{"a":NaN|N}"#, Some((byte(b'N'), None))),
    (br#"{"a":tru|}"#, Some((byte(b'}'), None))),
    (br#"{"a":|True}"#, Some((byte(b'T'), None))),
    (br#"{"a":true|e}"#, Some((byte(b'e'), None))),
    (br#"{"a":nul|}"#, Some((byte(b'}'), None))),
    (br#"{"a":fals|E}"#, Some((byte(b'E'), None))),
    (br#"{"a":|undefined}"#, Some((byte(b'u'), None))),
    (br#"{"a":|}"#, Some((byte(b'}'), None))),
    (br#"{"a":|'b'}"#, Some((byte(b'\''), None))),
    (br#"{"a":1|/*b*/}"#, Some((byte(b'/'), None))),
    (br#"{"a":1,|}"#, Some((byte(b'}'), None))),
    (br#"{"a":[1,|]}"#, Some((byte(b']'), None))),
    (br#"{"a":[|,1]}"#, Some((byte(b','), None))),
    (br#"{"a":[1|}}"#, Some((byte(b'}'), None))),
    (br#"{"a":{"b"|]}"#, Some((byte(b']'), None))),
    (br#"{"a":{"b":1|]}"#, Some((byte(b']'), None))),
    (br#"{"a":0|1}"#, Some((NUMBER, None))),
    (br#"{"a":1.|}"#, Some((NUMBER, None))),
    (br#"{"a":1.|e1}"#, Some((NUMBER, None))),
    (br#"{"a":1e|}"#, Some((NUMBER, None))),
    (br#"{"a":1e+|}"#, Some((NUMBER, None))),
    (br#"{"a":-|}"#, Some((NUMBER, None))),
    (br#"{"a":-|-1}"#, Some((NUMBER, None))),
    (br#"{"a":|.5}"#, Some((byte(b'.'), None))),
    (br#"{"a":0|x10}"#, Some((byte(b'x'), None))),
    (b"{\"a\":\"|\n\"}", Some((CONTROL, None))),
    (b"{\"|\t\":1}", Some((CONTROL, None))),
    (br#"{"a":"|\a"}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u"}"#, Some((ESCAPE, None))),
    (br#"{"a":"\ud83d|\u12"}"#, Some((ESCAPE, None))),
    (br#"{"|\u00g0":1}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u 123"}"#, Some((ESCAPE, None))),
    (br#"{"a":"|\u-123"}"#, Some((ESCAPE, None))),
    (b"{\"a\":\"|\\u\xc3\xa9\xc3\xa9\"}", Some((ESCAPE, None))),
    (b"{\"a\":\"|\\\xc3\xa9\"}", Some((ESCAPE, None))),
];

/// Every case of the tables as metadata, with its verdict.
pub(crate) fn own_cases() -> Vec<(Vec<u8>, Verdict)> {
    let tables: [(&[Case<'_>], &[u8], &[u8]); 3] = [
        (WHOLE, b"", b""),
        (DESCRIPTORS, br#"{"tensor_descriptors":["#, b"]}"),
        (
            SCALARS,
            br#"{"tensor_descriptors":[],"scalar_fields":"#,
            b"}",
        ),
    ];
    let mut cases = Vec::new();
    for (table, head, tail) in tables {
        for (text, expected) in table {
            let (metadata, offset) = marked(&[head, text, tail].concat());
            let expected = match expected {
                Some((kind, descriptor)) => Reject(*kind, offset.unwrap(), *descriptor),
                None => Accept,
            };
            cases.push((metadata, expected));
        }
    }
    cases
}

pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[test]
fn more_of_the_same_kinds_meets_the_same_verdicts() {
    let mut storage = room();
    let cases = own_cases();
    assert!(cases.len() > 200, "{}", cases.len());
    let mut wrong = Vec::new();
    for (metadata, expected) in &cases {
        let result = Options::new().decode_metadata(metadata, &mut storage);
        let actual = Verdict::of(&result);
        if actual != *expected {
            let text = shown(metadata);
            wrong.push(format!("{text}\n  {actual:?}, not {expected:?}"));
        }
        check_good(Message::decode(&GOOD, &mut *storage), &shown(metadata));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strict_json_differs_only_where_a_token_stands_among_the_scalars() {
    let mut storage = room();
    let strict = Options::new().with_strict_json(true);
    let mut differences = 0;
    for (metadata, expected) in &own_cases() {
        let result = strict.decode_metadata(metadata, &mut storage);
        let actual = Verdict::of(&result);
        if actual != *expected {
            let Reject(NonFinite, offset, None) = actual else {
                panic!("{}: {actual:?}", shown(metadata));
            };
            let rest = &metadata[offset..];
            let token = ["NaN", "Infinity", "-Infinity"];
            assert!(token.iter().any(|token| rest.starts_with(token.as_bytes())));
            differences += 1;
        }
    }
    // The row of all three, and `NaNN`, which is refused one token earlier.
    assert_eq!(differences, 2);
}

#[test]
fn each_key_is_refused_with_a_value_of_each_other_type() {
    use ValueType::{Array, Bool, Null, Number, Object, String};
    const VALUES: &[(&str, ValueType)] = &[
        ("[]", Array),
        ("true", Bool),
        ("false", Bool),
        ("null", Null),
        ("1", Number),
        ("-0.5", Number),
        ("NaN", Number),
        ("{}", Object),
        ("\"a\"", String),
    ];
    // (before the value, after it, the type demanded, the descriptor)
    const PLACES: &[(&str, &str, ValueType, Option<usize>)] = &[
        ("", "", Object, None),
        (r#"{"tensor_descriptors":"#, "}", Array, None),
        (
            r#"{"tensor_descriptors":[],"scalar_fields":"#,
            "}",
            Object,
            None,
        ),
        (r#"{"tensor_descriptors":["#, "]}", Object, Some(0)),
        (
            r#"{"tensor_descriptors":[{"shape":[],"dtype":"int8","field_name":"#,
            "}]}",
            String,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","dtype":"int8","shape":"#,
            "}]}",
            Array,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","shape":[1],"dtype":"#,
            "}]}",
            String,
            Some(0),
        ),
        (
            r#"{"tensor_descriptors":[{"field_name":"x","shape":[1,"#,
            r#"],"dtype":"int8"}]}"#,
            Number,
            Some(0),
        ),
    ];
    let mut storage = room();
    let mut count = 0;
    for (head, tail, expected, descriptor) in PLACES {
        for (value, actual) in VALUES {
            if expected != actual {
                let metadata = format!("{head}{value}{tail}");
                let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
                let kind = wrong(*expected, *actual);
                let verdict = Reject(kind, head.len(), *descriptor);
                assert_eq!(Verdict::of(&result), verdict, "{metadata}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 8 * 9 - 1 - 1 - 1 - 1 - 1 - 1 - 1 - 3);

    // A list index is a number or none at all, and has an error of its own.
    let head = format!(r#"{{"tensor_descriptors":[{{{PLAIN},"list_index":"#);
    for (value, _) in VALUES.iter().filter(|(value, _)| *value != "1") {
        let metadata = format!("{head}{value}}}]}}");
        let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
        let verdict = Reject(BadListIndex, head.len(), Some(0));
        assert_eq!(Verdict::of(&result), verdict, "{metadata}");
    }
}
