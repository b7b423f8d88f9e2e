//! Which of the processes of a job this one is: what the common launchers put into the environment.

use crate::Usage;

/// Launchers' variables, the innermost launcher first: a job script that starts mpirun under Slurm has both.
const RANK: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
const SIZE: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];

/// This process's rank, from 0.
///
/// # Errors
/// [`Usage`] when no launcher set one, or what it set is no number.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Result<u32, Usage> {
    lookup(&RANK, variable)?
        .ok_or_else(|| Usage(format!("no rank in the environment (looked for {}): give --rank N", RANK.join(", "))))
}

/// The number of processes of the job, where the launcher tells.
pub fn size(variable: impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Usage> {
    lookup(&SIZE, variable)
}

fn lookup(names: &[&str], variable: impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Usage> {
    let Some((name, text)) = names.iter().find_map(|name| Some((name, variable(name)?))) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Usage(format!("{name}=\"{text}\" is not a number: unset it, or give the number as an option"))),
    }
}

/// The environment of this process.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<u32, Usage> {
        rank(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_innermost_launcher_wins() {
        assert_eq!(of(&[("SLURM_PROCID", "3")]).unwrap(), 3);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("PMI_RANK", "5")]).unwrap(), 5);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("PMI_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "7")]).unwrap(), 7);
        assert!(of(&[]).is_err());
        assert!(of(&[("PMI_RANK", "")]).is_err());
        assert!(of(&[("PMI_RANK", "-1")]).is_err());
    }
}
