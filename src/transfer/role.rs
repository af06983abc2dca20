//! The roles of a disaggregated pipeline.

use core::fmt;

use crate::json::Str;

/// What an instance does for a request.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::Role;
///
/// assert_eq!(Role::from_name("denoiser"), Some(Role::Denoiser));
/// assert_eq!(Role::Decoder.name(), "decoder");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Role {
    /// Makes the conditioning of a request out of its prompt and images.
    Encoder,
    /// The part of an encoder that does the prompt, where the two are apart.
    PromptEncoder,
    /// The part of an encoder that does images, where the two are apart.
    ImageEncoder,
    /// Makes latents.
    Denoiser,
    /// Makes what the client gets out of latents.
    Decoder,
}

impl Role {
    /// All roles, in the order in which a request passes them.
    pub const ALL: &'static [Self] = &[
        Self::Encoder,
        Self::PromptEncoder,
        Self::ImageEncoder,
        Self::Denoiser,
        Self::Decoder,
    ];

    /// Returns the role of this name on the wire; `denoising` is a second one of the denoiser.
    ///
    /// As the Python peers do, without regard to the case of ASCII letters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("denoising") {
            return Some(Self::Denoiser);
        }
        let mut roles = Self::ALL.iter().copied();
        roles.find(|role| role.name().eq_ignore_ascii_case(name))
    }

    /// Returns the role that a message names, in whatever spelling.
    #[must_use]
    pub fn from_text(name: Str<'_>) -> Option<Self> {
        // The longest name has 14 bytes.
        let mut buffer = [0; 16];
        Self::from_name(name.copy_to(&mut buffer).ok()?)
    }

    /// Returns its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::PromptEncoder => "prompt_encoder",
            Self::ImageEncoder => "image_encoder",
            Self::Denoiser => "denoiser",
            Self::Decoder => "decoder",
        }
    }

    /// Tells whether its work comes as bytes of the head node's client, not out of a slot.
    #[must_use]
    pub const fn is_first(self) -> bool {
        matches!(self, Self::Encoder | Self::PromptEncoder)
    }

    /// Tells whether its output goes back to the client, and to no other role.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Decoder)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_wire_and_read_in_any_case() {
        for &role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
            assert_eq!(
                Role::from_name(&role.name().to_ascii_uppercase()),
                Some(role)
            );
        }
        assert_eq!(Role::from_name("denoising"), Some(Role::Denoiser));
        for other in ["", "server", "monolithic", "decoder ", "encoders"] {
            assert_eq!(Role::from_name(other), None, "{other}");
        }
    }
}
