//! One line for whatever is wrong with a command line: what, why, and what to do.

use std::error::Error as _;
use std::process::ExitCode;
use std::{env, iter};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::USAGE;
use crate::supervisor::message;

pub fn line(text: &str) -> ExitCode {
    message::line(text);
    ExitCode::from(USAGE)
}

/// Help and version are no complaints, but come from the parser all the same.
pub fn of_parsing(error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => line(&describe(error)),
    }
}

fn describe(error: &Error) -> String {
    let option = context(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingSubcommand => {
            "no command to run; give one after the options: precache-run [OPTIONS] [--] COMMAND [ARGS]...".to_owned()
        }
        ErrorKind::UnknownArgument => format!(
            "there is no option {option:?}; {}",
            match context(error, ContextKind::SuggestedArg) {
                Some(similar) => format!("did you mean {similar}?"),
                None => "precache-run --help lists them, and the program's own come after its name".to_owned(),
            }
        ),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command {value:?}; precache --help lists them")
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{option} has no value; give one after it, or see precache-run --help")
        }
        ErrorKind::InvalidUtf8 => {
            "an option's value is not UTF-8, which patterns and ranges must be; match other bytes with `?`".to_owned()
        }
        ErrorKind::InvalidValue => format!(
            "unusable {} {value:?}: not one of its values; give {}",
            name(&option, &value),
            context(error, ContextKind::ValidValue).unwrap_or_default()
        ),
        ErrorKind::ValueValidation => format!(
            "unusable {} {value:?}: {}",
            name(&option, &value),
            error.source().map(ToString::to_string).unwrap_or_default()
        ),
        ErrorKind::ArgumentConflict => {
            format!("{option} is given twice; give it once")
        }
        _ => first_paragraph(&error.to_string()),
    }
}

/// The option without its value's name, or the variable if the value came from there.
fn name(option: &str, value: &str) -> String {
    let flag = option.split([' ', '[', '=']).next().unwrap_or(option);
    let variable = iter::once("PRECACHE")
        .chain(flag.trim_start_matches('-').split('-'))
        .collect::<Vec<_>>()
        .join("_")
        .to_ascii_uppercase();
    match env::var(&variable) {
        Ok(set) if set == value => variable,
        _ => flag.to_owned(),
    }
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}

fn first_paragraph(rendered: &str) -> String {
    let paragraph = rendered.split("\n\n").next().unwrap_or(rendered);
    let words: Vec<_> = paragraph.split_whitespace().collect();
    words.join(" ").replacen("error: ", "", 1) + "; see precache-run --help"
}
