//! The text format of protocol buffers, as far as Caffe's files use it: fields, messages, scalars, comments.
//!
//! Without the schema: a message is a list of named fields whose values are messages or words.

use std::iter::Peekable;
use std::str::CharIndices;

/// Messages in messages beyond this depth are damage, or an attack on the stack.
const DEEPEST: usize = 64;

/// Why a file is not in the text format.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("line {line}: expected {expected}, found {found}")]
    Expected { line: usize, expected: &'static str, found: String },
    #[error("line {0}: a string without its closing quote")]
    OpenString(usize),
    #[error("line {0}: messages nested more than {DEEPEST} deep")]
    TooDeep(usize),
}

/// A field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, a name, or the content of a string.
    Word(String),
    Message(Message),
}

/// Fields in the order of the text; names may repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<(String, Value)>);

impl Message {
    /// Reads a whole file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut tokens = Tokens { text, chars: text.char_indices().peekable(), line: 1, ahead: None };
        let message = fields(&mut tokens, None, 0)?;
        Ok(message)
    }

    /// The messages in all fields of that name.
    pub fn messages<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Message> {
        self.values(name).filter_map(|value| match value {
            Value::Message(message) => Some(message),
            Value::Word(_) => None,
        })
    }

    /// The words in all fields of that name.
    pub fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.values(name).filter_map(|value| match value {
            Value::Word(word) => Some(word.as_str()),
            Value::Message(_) => None,
        })
    }

    /// The last field of that name wins, as in protocol buffers.
    pub fn word<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.words(name).last()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// The fields up to `close`, or to the end of the file.
fn fields(tokens: &mut Tokens<'_>, close: Option<char>, depth: usize) -> Result<Message, Error> {
    if depth > DEEPEST {
        return Err(Error::TooDeep(tokens.line));
    }
    let mut message = Message::default();
    loop {
        match tokens.next()? {
            None if close.is_none() => return Ok(message),
            Some(Token::Sign(sign)) if Some(sign) == close => return Ok(message),
            // Separators that the format allows and ignores.
            Some(Token::Sign(',' | ';')) => {}
            Some(Token::Word(name)) => field(tokens, name, &mut message, depth)?,
            other => return Err(tokens.expected("the name of a field", other)),
        }
    }
}

/// `name: word`, `name: [word, ...]`, `name { ... }`, `name: < ... >`; the colon is optional before a message.
fn field(tokens: &mut Tokens<'_>, name: String, message: &mut Message, depth: usize) -> Result<(), Error> {
    let colon = tokens.take(&Token::Sign(':'))?;
    match tokens.next()? {
        Some(Token::Sign('{')) => message.0.push((name, Value::Message(fields(tokens, Some('}'), depth + 1)?))),
        Some(Token::Sign('<')) => message.0.push((name, Value::Message(fields(tokens, Some('>'), depth + 1)?))),
        Some(Token::Sign('[')) if colon => list(tokens, &name, message, depth)?,
        Some(Token::Word(word)) if colon => message.0.push((name, Value::Word(word))),
        Some(Token::Text(mut text)) if colon => {
            // Strings that follow each other are one string.
            while let Some(Token::Text(more)) = tokens.peek()?.cloned() {
                tokens.next()?;
                text.push_str(&more);
            }
            message.0.push((name, Value::Word(text)));
        }
        other if colon => return Err(tokens.expected("a value", other)),
        other => return Err(tokens.expected("\":\" or \"{\" after the name of a field", other)),
    }
    Ok(())
}

/// A list is the same as the field repeated.
fn list(tokens: &mut Tokens<'_>, name: &str, message: &mut Message, depth: usize) -> Result<(), Error> {
    loop {
        match tokens.next()? {
            Some(Token::Sign(']')) => return Ok(()),
            Some(Token::Sign(',')) => {}
            Some(Token::Word(word) | Token::Text(word)) => message.0.push((name.into(), Value::Word(word))),
            Some(Token::Sign('{')) => {
                message.0.push((name.into(), Value::Message(fields(tokens, Some('}'), depth + 1)?)));
            }
            other => return Err(tokens.expected("a value or \"]\"", other)),
        }
    }
}

struct Tokens<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
    ahead: Option<Option<Token>>,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<Token>, Error> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    fn peek(&mut self) -> Result<Option<&Token>, Error> {
        if self.ahead.is_none() {
            self.ahead = Some(self.read()?);
        }
        Ok(self.ahead.as_ref().and_then(Option::as_ref))
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, token: &Token) -> Result<bool, Error> {
        let same = self.peek()? == Some(token);
        if same {
            self.ahead = None;
        }
        Ok(same)
    }

    fn read(&mut self) -> Result<Option<Token>, Error> {
        while let Some((at, c)) = self.chars.next() {
            match c {
                '\n' => self.line += 1,
                '#' => while self.chars.next_if(|(_, c)| *c != '\n').is_some() {},
                '"' | '\'' => return self.string(c).map(Some),
                c if is_word(c) => {
                    let mut end = at + c.len_utf8();
                    while let Some((at, c)) = self.chars.next_if(|(_, c)| is_word(*c)) {
                        end = at + c.len_utf8();
                    }
                    return Ok(Some(Token::Word(self.text[at..end].to_owned())));
                }
                c if c.is_whitespace() => {}
                sign => return Ok(Some(Token::Sign(sign))),
            }
        }
        Ok(None)
    }

    /// The rest of a string. Of the escapes only quotes, backslash and newline are undone: the others make no difference to
    /// a path.
    fn string(&mut self, quote: char) -> Result<Token, Error> {
        let start = self.line;
        let mut text = String::new();
        while let Some((_, c)) = self.chars.next() {
            match c {
                c if c == quote => return Ok(Token::Text(text)),
                '\n' => return Err(Error::OpenString(start)),
                '\\' => match self.chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c @ ('"' | '\'' | '\\'))) => text.push(c),
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(Error::OpenString(start))
    }

    fn expected(&self, expected: &'static str, found: Option<Token>) -> Error {
        let found = match found {
            None => "the end of the file".into(),
            Some(Token::Word(text) | Token::Text(text)) => format!("\"{text}\""),
            Some(Token::Sign(sign)) => format!("\"{sign}\""),
        };
        Error::Expected { line: self.line, expected, found }
    }
}

/// Names and numbers alike: `batch_size`, `-1.5e+3`, `0x1F`.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')
}

#[cfg(test)]
mod tests;
