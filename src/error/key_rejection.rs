//! Why an API key is not accepted.

/// The reasons, which are only logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRejection {
    /// The request has several `Authorization` headers.
    TwoHeaders,
    /// The scheme is not `Bearer`.
    OtherScheme,
    /// A part of the key is malformed, or the checksum is wrong.
    Malformed,
    /// There is no record with the id of the key.
    Unknown,
    WrongSecret,
    Revoked,
    Expired,
    /// The key was not issued for the current registration of its organization.
    OtherRegistration,
}

impl KeyRejection {
    /// The name in the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TwoHeaders => "two_headers",
            Self::OtherScheme => "other_scheme",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::WrongSecret => "wrong_secret",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::OtherRegistration => "other_registration",
        }
    }
}
