//! Programs that an injected one executes, and that do not have our library.

/// Why one has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Uninjected {
    /// No loader comes into it.
    Static = 0,
    OtherMachine = 1,
    OtherLibc = 2,
    Sanitizer = 3,
    /// The loader drops LD_PRELOAD.
    Privileged = 4,
    /// The library is not where the program is executed.
    Unreachable = 5,
    /// It may be executed and not read, or is known by its path alone.
    Unseen = 6,
}

impl Uninjected {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Static,
        Self::OtherMachine,
        Self::OtherLibc,
        Self::Sanitizer,
        Self::Privileged,
        Self::Unreachable,
        Self::Unseen,
    ];

    /// Whether it would not start with the library, or say something that it does not say alone.
    pub fn is_broken_by_library(self) -> bool {
        match self {
            Self::OtherMachine | Self::OtherLibc | Self::Sanitizer | Self::Unreachable | Self::Unseen => true,
            // What a static program executes may take the library; for the other, the loader drops it.
            Self::Static | Self::Privileged => false,
        }
    }

    /// What a report says.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Static => "it is statically linked and takes no library",
            Self::OtherMachine => "it is built for another machine or word size than precache",
            Self::OtherLibc => "it is not built for the GNU C library, 2.34 or later, as precache is",
            Self::Sanitizer => "it is a sanitizer build, whose runtime insists on being the first library",
            Self::Privileged => {
                "it changes its user, group or capabilities at its start, and the loader then drops LD_PRELOAD"
            }
            Self::Unreachable => {
                "the injected library cannot be opened where it runs (another root), or is not root's, who executes it"
            }
            Self::Unseen => {
                "it cannot be looked at (it may be executed and not read, or was opened for its path alone), and nobody can tell \
                 whether it would start with the library"
            }
        }
    }
}
