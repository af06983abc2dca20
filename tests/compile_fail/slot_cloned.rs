//! A slot has one owner: its bytes would have two, and be freed twice.

use tensorwire::transfer::pool::Pool;

fn main() {
    let pool = Pool::new(1 << 20).unwrap();
    let slot = pool.allocate(1).unwrap();
    let again = slot.clone();
    println!("{slot:?} {again:?}");
}
