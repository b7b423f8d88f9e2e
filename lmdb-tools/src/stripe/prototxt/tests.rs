use proptest::prelude::*;

use super::*;

#[test]
fn all_shapes_of_a_field() {
    let text = r#"
        name: "Goog" 'LeNet'  # a comment: with { signs
        layer { type: "Data" data_param: < batch_size: 32; source: "a\"b" > }
        layer: { kernel: [1, 3, 5], scale: -1.5e+3 }
    "#;
    let net = Message::parse(text).unwrap();
    assert_eq!(net.word("name"), Some("GoogLeNet"));
    let layers: Vec<_> = net.messages("layer").collect();
    let data = layers[0].messages("data_param").next().unwrap();
    assert_eq!((data.word("batch_size"), data.word("source")), (Some("32"), Some("a\"b")));
    assert_eq!(layers[1].words("kernel").collect::<Vec<_>>(), ["1", "3", "5"]);
    assert_eq!(layers[1].word("scale"), Some("-1.5e+3"));
}

#[test]
fn errors_name_the_line() {
    let error = |text| Message::parse(text).unwrap_err().to_string();
    assert_eq!(error("a: 1\nb c"), "line 2: expected \":\" or \"{\" after the name of a field, found \"c\"");
    assert_eq!(error("a {\n b: 1\n"), "line 3: expected the name of a field, found the end of the file");
    assert_eq!(error("a: \"x\n\""), "line 1: a string without its closing quote");
    assert_eq!(error("}"), "line 1: expected the name of a field, found \"}\"");
    assert!(matches!(Message::parse(&"a{".repeat(1000)), Err(Error::TooDeep(1))));
}

fn word() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9_]{0,6}"
}

fn message() -> impl Strategy<Value = Message> {
    let value = ".{0,10}".prop_map(Value::Word);
    let leaf = prop::collection::vec((word(), value.clone()), 0..4).prop_map(Message);
    leaf.prop_recursive(4, 30, 4, move |inner| {
        prop::collection::vec((word(), prop_oneof![value.clone(), inner.prop_map(Value::Message)]), 0..4)
            .prop_map(Message)
    })
}

fn print(message: &Message) -> String {
    let field = |(name, value): &(String, Value)| match value {
        Value::Message(inner) => format!("{name} {{ {} }}\n", print(inner)),
        Value::Word(text) => {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}: \"{text}\"\n")
        }
    };
    message.0.iter().map(field).collect()
}

proptest! {
    #[test]
    fn reads_what_is_printed(message in message()) {
        prop_assert_eq!(Message::parse(&print(&message)), Ok(message));
    }

    #[test]
    fn noise_is_an_error_or_a_message(text in "[a-c:{}<>\\[\\],;\"'\\\\# \n0-9.-]{0,60}") {
        let _ = Message::parse(&text);
    }
}
