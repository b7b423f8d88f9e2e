//! Which of the processes of a job this one is: what the common launchers put into the environment.

use crate::Usage;

/// Launchers' variables for the rank and for the number of processes, the innermost launcher first: a job script that
/// starts mpirun under Slurm has both.
const LAUNCHERS: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")];

/// This process's rank, from 0.
///
/// # Errors
/// [`Usage`] when no launcher set one, or what it set is no number.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Result<u32, Usage> {
    let names = LAUNCHERS.map(|(rank, _)| rank).join(", ");
    let none = || Usage(format!("no rank in the environment (looked for {names}): give --rank N"));
    let (launcher, _) = launcher(&variable).ok_or_else(none)?;
    number(launcher, &variable)?.ok_or_else(none)
}

/// The number of processes of the job, where the launcher that set the rank tells.
pub fn size(variable: impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Usage> {
    match launcher(&variable) {
        Some((_, size)) => number(size, &variable),
        None => Ok(None),
    }
}

/// The innermost launcher that set a rank. An empty variable is what a script leaves that clears it.
fn launcher(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, &'static str)> {
    LAUNCHERS.into_iter().find(|(rank, _)| variable(rank).is_some_and(|text| !text.trim().is_empty()))
}

fn number(name: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Usage> {
    let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
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

    fn value(set: &[(&str, &str)], name: &str) -> Option<String> {
        set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
    }

    fn of(set: &[(&str, &str)]) -> Result<u32, Usage> {
        rank(|name| value(set, name))
    }

    #[test]
    fn the_innermost_launcher_wins() {
        assert_eq!(of(&[("SLURM_PROCID", "3")]).unwrap(), 3);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("PMI_RANK", "5")]).unwrap(), 5);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("PMI_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "7")]).unwrap(), 7);
        assert!(of(&[]).is_err());
        assert!(of(&[("PMI_RANK", "")]).is_err());
        assert!(of(&[("PMI_RANK", "-1")]).is_err());
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", ""), ("PMI_RANK", " "), ("SLURM_PROCID", "2")]).unwrap(), 2);
    }

    #[test]
    fn rank_and_size_come_from_one_launcher() {
        let size = |set: &[(&str, &str)]| size(|name| value(set, name)).unwrap();
        assert_eq!(size(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), Some(4));
        let mpirun_under_slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("PMI_RANK", "3"), ("PMI_SIZE", "8")];
        assert_eq!(size(&mpirun_under_slurm), Some(8));
        assert_eq!(size(&mpirun_under_slurm[..3]), None, "not the one task that Slurm started");
        assert_eq!(size(&[("PMI_SIZE", "8"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), Some(4));
    }
}
