//! What the simulated driver notices, by programs that do wrong; and that it lets right ones be.

use cudarc::driver::CudaContext;

use super::simulated;

#[test]
fn a_clean_program_is_not_reported() {
    simulated::test("honesty::a_clean_program_is_not_reported", || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let numbers: Vec<u32> = (0..100_000).collect();
        simulated::pageable(|| {
            let there = stream.clone_htod(&numbers).unwrap();
            let other = context.default_stream();
            let copy = other.clone_dtod(&there).unwrap();
            assert_eq!(stream.clone_dtoh(&copy).unwrap(), numbers);
        });
    });
}
