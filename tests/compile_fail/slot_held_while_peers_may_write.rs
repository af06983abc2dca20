//! While peers may write into a slot, its owner has none that could be read.

use tensorwire::transfer::pool::Pool;

fn main() {
    let pool = Pool::new(1 << 20).unwrap();
    let slot = pool.allocate(1).unwrap();
    let landing = slot.open();
    println!("{slot:?} {landing:?}");
}
