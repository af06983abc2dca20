//! The caps on what a peer may ask for.

/// Caps on a message's metadata, checked before anything is handed out.
///
/// No cap makes the decoder allocate: each only turns larger messages away.
///
/// # Examples
///
/// ```
/// use tensorwire::Limits;
///
/// let limits = Limits::new().with_rank(8).with_tensor_bytes(64 << 20);
/// assert_eq!(limits.rank(), 8);
/// assert_eq!(limits.descriptors(), 4096);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    metadata_bytes: usize,
    descriptors: usize,
    rank: usize,
    depth: usize,
    name_bytes: usize,
    list_index: usize,
    tensor_bytes: usize,
}

impl Limits {
    /// The deepest nesting that can be allowed.
    ///
    /// No scalars of a request come near it, and with it the scanner's whole
    /// stack is a `u128` of one bit a level.
    pub const MAX_DEPTH: usize = 128;

    /// The longest metadata frame that can be allowed: storage keeps offsets into it as `u32`.
    pub const MAX_METADATA_BYTES: usize = 0xffff_ffff;

    /// The largest `list_index` that can be allowed: the length of its list fits a `usize` anywhere.
    pub const MAX_LIST_INDEX: usize = 0x7fff_ffff;

    /// Returns the default caps.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            // A message of 4096 descriptors of ordinary names takes half of it.
            metadata_bytes: 1 << 20,
            // Larger than any list of tensors seen; a table of them fits in 300 KiB.
            descriptors: 4096,
            // Where numpy 2 stops.
            rank: 64,
            depth: Self::MAX_DEPTH,
            // Names are identifiers; 1024 bytes hold any that a person wrote.
            name_bytes: 1024,
            // A peer's list has at most one member more, holes included.
            list_index: 4096,
            // Only the caller knows what the machine can take.
            tensor_bytes: usize::MAX,
        }
    }

    /// Sets the longest metadata frame in bytes; 1 MiB unless set, at most `u32::MAX`.
    #[must_use]
    pub const fn with_metadata_bytes(mut self, bytes: usize) -> Self {
        self.metadata_bytes = if bytes < Self::MAX_METADATA_BYTES {
            bytes
        } else {
            Self::MAX_METADATA_BYTES
        };
        self
    }

    /// Sets the largest number of descriptors; 4096 unless set.
    #[must_use]
    pub const fn with_descriptors(mut self, descriptors: usize) -> Self {
        self.descriptors = descriptors;
        self
    }

    /// Sets the largest rank, which is the number of dimensions; 64 unless set.
    #[must_use]
    pub const fn with_rank(mut self, rank: usize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the deepest nesting of arrays and objects, the metadata object
    /// itself being level 1; 128 unless set, which is also the most.
    ///
    /// It is a cap on `scalar_fields` (level 2) and on the values of unknown
    /// keys. The four levels of the schema's own keys always pass.
    #[must_use]
    pub const fn with_depth(mut self, depth: usize) -> Self {
        self.depth = if depth < Self::MAX_DEPTH {
            depth
        } else {
            Self::MAX_DEPTH
        };
        self
    }

    /// Sets the longest field name in bytes of UTF-8, unescaped; 1024 unless set.
    #[must_use]
    pub const fn with_name_bytes(mut self, bytes: usize) -> Self {
        self.name_bytes = bytes;
        self
    }

    /// Sets the largest `list_index`; 4096 unless set, at most `i32::MAX`.
    #[must_use]
    pub const fn with_list_index(mut self, list_index: usize) -> Self {
        self.list_index = if list_index < Self::MAX_LIST_INDEX {
            list_index
        } else {
            Self::MAX_LIST_INDEX
        };
        self
    }

    /// Sets the largest sum of all tensors' sizes in bytes; unlimited unless set.
    #[must_use]
    pub const fn with_tensor_bytes(mut self, bytes: usize) -> Self {
        self.tensor_bytes = bytes;
        self
    }

    /// Returns the longest metadata frame in bytes.
    #[must_use]
    pub const fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    /// Returns the largest number of descriptors.
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Returns the largest rank.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the deepest nesting of arrays and objects.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the longest field name in bytes of UTF-8, unescaped.
    #[must_use]
    pub const fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// Returns the largest `list_index`.
    #[must_use]
    pub const fn list_index(&self) -> usize {
        self.list_index
    }

    /// Returns the largest sum of all tensors' sizes in bytes.
    #[must_use]
    pub const fn tensor_bytes(&self) -> usize {
        self.tensor_bytes
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}
