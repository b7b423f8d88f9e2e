/// Arguments that parse and yet cannot be followed: what is missing or contradictory, and what to give instead.
///
/// [`run`](crate::run) turns it into exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
