//! Torch's way to the device, where there is a Python with it.

use std::process::Command;

use tensorwire::DType;
use tensorwire::device::Device;
use tensorwire::transport::Wait;

use super::{BUDGET, Contestant, median, rate, size, turns};
use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;
use crate::payload::Payload;
use crate::report::{Report, Table};

pub(super) fn run(gpu: &Gpu, run: &Run, report: &mut Report) -> Result<()> {
    let mut sizes: Vec<usize> = vec![64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20];
    sizes.retain(|len| !run.small || *len <= 1 << 20);
    let theirs = match torch(run, &sizes) {
        Ok(theirs) => theirs,
        Err(why) => {
            report.skip_table(TITLE, &why.to_string());
            return Ok(());
        }
    };
    let mut table = Table::new(
        TITLE,
        "One payload at a time, from memory that is not pinned, waited for. Torch: .to(\"cuda\", non_blocking=True) and\n\
         torch.cuda.synchronize(), in a process of its own before ours, so not in turns. Faster: ours by torch's.",
        &["payload", "torch", "upload", "faster"],
    );
    for (len, theirs) in sizes.into_iter().zip(theirs) {
        let sent = Payload::new("t", DType::UInt8, len, 1);
        let upload: Contestant<'_> = Box::new(|| {
            drop(gpu.cuda.upload(&sent.view()?, &gpu.stream, Wait::Forever)?);
            Ok(gpu.stream.synchronize()?)
        });
        let times = turns(&mut [upload], BUDGET / 2)?;
        let ours = median(times.into_iter().flatten());
        table.row(
            size(len),
            vec![
                rate(len, theirs),
                rate(len, ours),
                format!("{:.2}", theirs / ours),
            ],
        );
    }
    report.table(&table);
    Ok(())
}

/// Torch's seconds for each size; or why there are none.
fn torch(run: &Run, sizes: &[usize]) -> Result<Vec<f64>> {
    let python = run.python.display();
    let mut command = Command::new(&run.python);
    command.args(["-c", include_str!("torch_copy.py")]);
    command.arg(run.device.to_string());
    command.args(sizes.iter().map(usize::to_string));
    let output = command
        .output()
        .map_err(|error| format!("{python}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it said nothing").to_owned();
        return Err(format!("{python}: {last}").into());
    }
    let text = String::from_utf8(output.stdout)?;
    let times = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<f64>, _>>()?;
    if times.len() != sizes.len() {
        return Err(format!(
            "{python}: {} figures for {} sizes",
            times.len(),
            sizes.len()
        )
        .into());
    }
    Ok(times)
}

const TITLE: &str = "against torch";
