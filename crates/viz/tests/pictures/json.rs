//! A small reader of JSON, so that the data in a page is checked by something that did not write it.

use std::iter::Peekable;
use std::str::Chars;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, in the order it is written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value that fills `text`; panics if it is not JSON.
    pub fn parse(text: &str) -> Json {
        let mut rest = text.chars().peekable();
        let value = read(&mut rest);
        skip_space(&mut rest);
        assert_eq!(rest.next(), None, "nothing follows the value");
        value
    }

    /// The member `name` of an object.
    pub fn get(&self, name: &str) -> &Json {
        let Json::Object(members) = self else {
            panic!("{self:?} is not an object")
        };
        let found = members.iter().find(|(member, _)| member == name);
        &found.unwrap_or_else(|| panic!("there is no {name}")).1
    }

    /// The items of a list.
    pub fn items(&self) -> &[Json] {
        let Json::List(items) = self else {
            panic!("{self:?} is not a list")
        };
        items
    }

    /// The characters of a string.
    pub fn text(&self) -> &str {
        let Json::Text(text) = self else {
            panic!("{self:?} is not a string")
        };
        text
    }

    /// The value of a number.
    pub fn number(&self) -> f64 {
        let Json::Number(number) = self else {
            panic!("{self:?} is not a number")
        };
        *number
    }
}

fn skip_space(rest: &mut Peekable<Chars>) {
    while rest.next_if(|next| " \n\r\t".contains(*next)).is_some() {}
}

fn expect(rest: &mut Peekable<Chars>, wanted: char) {
    skip_space(rest);
    assert_eq!(rest.next(), Some(wanted));
}

fn read(rest: &mut Peekable<Chars>) -> Json {
    skip_space(rest);
    match rest.peek().expect("a value follows") {
        '"' => Json::Text(read_text(rest)),
        '[' => Json::List(read_between(rest, '[', ']', read)),
        '{' => Json::Object(read_between(rest, '{', '}', |rest| {
            skip_space(rest);
            let name = read_text(rest);
            expect(rest, ':');
            (name, read(rest))
        })),
        _ => {
            let mut word = String::new();
            while let Some(next) = rest.next_if(|next| !",]} \n".contains(*next)) {
                word.push(next);
            }
            match word.as_str() {
                "true" => Json::Bool(true),
                "false" => Json::Bool(false),
                number => Json::Number(number.parse().expect("a number")),
            }
        }
    }
}

fn read_between<T>(
    rest: &mut Peekable<Chars>,
    open: char,
    close: char,
    mut item: impl FnMut(&mut Peekable<Chars>) -> T,
) -> Vec<T> {
    expect(rest, open);
    let mut items = Vec::new();
    skip_space(rest);
    if rest.next_if_eq(&close).is_some() {
        return items;
    }
    loop {
        items.push(item(rest));
        skip_space(rest);
        if rest.next_if_eq(&close).is_some() {
            return items;
        }
        expect(rest, ',');
    }
}

fn read_text(rest: &mut Peekable<Chars>) -> String {
    assert_eq!(rest.next(), Some('"'));
    let mut text = String::new();
    loop {
        match rest.next().expect("the string ends") {
            '"' => return text,
            '\\' => match rest.next().expect("an escape has a letter") {
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).expect("four hexadecimal digits");
                    text.push(char::from_u32(code).expect("a character"));
                }
                plain => text.push(plain),
            },
            control if control < ' ' => panic!("a bare control character in a string"),
            plain => text.push(plain),
        }
    }
}
