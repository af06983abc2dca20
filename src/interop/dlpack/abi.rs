//! DLPack's structs, as `dlpack.h` has them.

use core::ffi::c_void;

use crate::dtype::DType;

/// A tensor of DLPack without its version: `DLManagedTensor`, which a capsule named `dltensor` holds.
///
/// It is only ever seen through a pointer, which is cast to whatever another binding calls it.
#[derive(Debug)]
#[repr(C)]
pub struct ManagedTensor {
    pub(super) tensor: Tensor,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// A tensor of DLPack 1.0 and later: `DLManagedTensorVersioned`, which a capsule named `dltensor_versioned` holds.
///
/// It is only ever seen through a pointer, which is cast to whatever another binding calls it.
#[derive(Debug)]
#[repr(C)]
pub struct VersionedTensor {
    pub(super) version: Version,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut Self)>,
    pub(super) flags: u64,
    pub(super) tensor: Tensor,
}

/// `DLTensor`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Tensor {
    pub(super) data: *mut c_void,
    pub(super) device: Device,
    pub(super) rank: i32,
    pub(super) dtype: DataType,
    pub(super) shape: *mut i64,
    /// In elements; null for C-contiguous before version 1.2.
    pub(super) strides: *mut i64,
    pub(super) byte_offset: u64,
}

#[cfg(test)]
impl Tensor {
    pub(super) const EMPTY: Self = Self {
        data: core::ptr::null_mut(),
        device: Device::HOST,
        rank: 0,
        dtype: DataType::of(DType::UInt8),
        shape: core::ptr::null_mut(),
        strides: core::ptr::null_mut(),
        byte_offset: 0,
    };
}

/// `DLDevice`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub(super) struct Device {
    pub(super) kind: i32,
    pub(super) id: i32,
}

impl Device {
    pub(super) const HOST: Self = Self { kind: 1, id: 0 };

    /// Whether the host reads it like its own memory: `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`.
    pub(super) const fn is_host(self) -> bool {
        matches!(self.kind, 1 | 3 | 11)
    }
}

/// `DLPackVersion`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl Version {
    /// What is written here; the codes of all our dtypes are of 1.1, and strides are never null, as 1.2 demands.
    pub(super) const OURS: Self = Self { major: 1, minor: 1 };
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
pub(super) const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
pub(super) const IS_COPIED: u64 = 2;

/// `DLDataType`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub(super) struct DataType {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

impl DataType {
    pub(super) const fn of(dtype: DType) -> Self {
        let (code, bits) = match dtype {
            DType::Int8 => (0, 8),
            DType::Int16 => (0, 16),
            DType::Int32 => (0, 32),
            DType::Int64 => (0, 64),
            DType::UInt8 => (1, 8),
            DType::UInt16 => (1, 16),
            DType::UInt32 => (1, 32),
            DType::UInt64 => (1, 64),
            DType::Float16 => (2, 16),
            DType::Float32 => (2, 32),
            DType::Float64 => (2, 64),
            DType::BFloat16 => (4, 16),
            DType::Complex64 => (5, 64),
            DType::Complex128 => (5, 128),
            DType::Bool => (6, 8),
            DType::Float8E4M3Fn => (10, 8),
            DType::Float8E4M3Fnuz => (11, 8),
            DType::Float8E5M2 => (12, 8),
            DType::Float8E5M2Fnuz => (13, 8),
            DType::Float8E8M0Fnu => (14, 8),
        };
        Self {
            code,
            bits,
            lanes: 1,
        }
    }

    pub(super) fn dtype(self) -> Option<DType> {
        let mut all = DType::ALL.iter().copied();
        all.find(|&dtype| Self::of(dtype) == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn every_dtype_has_a_code_of_its_own_and_its_size() {
        for &dtype in DType::ALL {
            let data_type = DataType::of(dtype);
            assert_eq!(data_type.dtype(), Some(dtype));
            assert_eq!(usize::from(data_type.bits), 8 * dtype.size());
        }
    }

    /// As a C compiler lays out `dlpack.h` 1.1 on 64 bits.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_structs_lie_as_in_the_header() {
        assert_eq!(size_of::<Tensor>(), 48);
        assert_eq!(
            [
                offset_of!(Tensor, data),
                offset_of!(Tensor, device),
                offset_of!(Tensor, rank),
                offset_of!(Tensor, dtype),
                offset_of!(Tensor, shape),
                offset_of!(Tensor, strides),
                offset_of!(Tensor, byte_offset),
            ],
            [0, 8, 16, 20, 24, 32, 40]
        );
        assert_eq!(size_of::<ManagedTensor>(), 64);
        assert_eq!(offset_of!(ManagedTensor, context), 48);
        assert_eq!(offset_of!(ManagedTensor, deleter), 56);
        assert_eq!(size_of::<VersionedTensor>(), 80);
        assert_eq!(offset_of!(VersionedTensor, context), 8);
        assert_eq!(offset_of!(VersionedTensor, deleter), 16);
        assert_eq!(offset_of!(VersionedTensor, flags), 24);
        assert_eq!(offset_of!(VersionedTensor, tensor), 32);
    }
}
