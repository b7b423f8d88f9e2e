//! What happened in a session, and what was decided and why.

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SessionReport {}

impl SessionReport {
    pub fn summary(&self) -> String {
        String::new()
    }
}
