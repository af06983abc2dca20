//! The look for a device where there is one: what it says, and that each call of it is checked.

use cudarc::driver::sys::CUresult;
use tensorwire::cuda::{self, Unavailable};

use crate::simulated;

#[test]
fn the_device_is_described() {
    const NAME: &str = "availability::the_device_is_described";
    for pools in ["0", "1"] {
        let environment = [("SIMCUDA_POOLS", pools), ("SIMCUDA_MEMORY", "1234567")];
        simulated::test_with(NAME, &environment, || {
            let device = cuda::availability(0).unwrap();
            assert_eq!(device.ordinal, 0);
            assert!(device.device_count > 0);
            assert!(device.driver_version >= 11040);
            assert!(!device.name.is_empty());
            if !simulated::needs_script(NAME) {
                return;
            }
            let pools = std::env::var("SIMCUDA_POOLS").unwrap() == "1";
            assert_eq!(device.has_stream_ordered_allocation, pools);
            assert_eq!(&*device.name, "Simulated device 0");
            assert_eq!((device.device_count, device.memory_bytes), (1, 1_234_567));
            // It left no context and nothing else behind.
            assert_eq!(simulated::live(), simulated::Live::default());
            assert_eq!(simulated::calls("cuDevicePrimaryCtxRetain"), 0);
        });
    }
}

#[test]
fn each_of_its_calls_is_checked() {
    const NAME: &str = "availability::each_of_its_calls_is_checked";
    simulated::test(NAME, || {
        if !simulated::needs_script(NAME) {
            return;
        }
        for name in [
            "cuDriverGetVersion",
            "cuInit",
            "cuDeviceGetCount",
            "cuDeviceGet",
            "cuDeviceGetName",
            "cuDeviceTotalMem_v2",
            "cuDeviceGetAttribute",
        ] {
            simulated::fail(name, 0, CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
            let error = cuda::availability(0).unwrap_err();
            let Unavailable::Driver { call, code } = error else {
                panic!("{name}: {error}");
            };
            assert_eq!((call, code.value()), (name, 802));
            // The next one has to be as good as ever.
            cuda::availability(0).unwrap();
        }
        simulated::fail("cuInit", 0, CUresult::CUDA_ERROR_NO_DEVICE);
        let none = Unavailable::NoSuchDevice {
            ordinal: 5,
            count: 0,
        };
        assert_eq!(cuda::availability(5), Err(none));
    });
}

#[test]
fn any_thread_may_look_at_any_time() {
    simulated::test("availability::any_thread_may_look_at_any_time", || {
        std::thread::scope(|scope| {
            let look = || (0..50).for_each(|_| drop(cuda::availability(0).unwrap()));
            (0..4).for_each(|_| drop(scope.spawn(look)));
        });
    });
}
