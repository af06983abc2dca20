//! The command line.

use std::ffi::OsString;

use crate::plan::{Size, Stage};
use crate::stage::StageRun;

pub(crate) const HELP: &str = "\
Runs a video model's encoder, denoiser and decoder as three processes over ZeroMQ, compares every payload byte for byte,
and prints what each message cost.

usage: pipeline [OPTION...]

  --requests N       how many requests go through the pipeline (12)
  --python STAGES    puts the Python codec in the place of these stages: encoder, denoiser, decoder with commas between
                     them, or all. Uses TENSORWIRE_PYTHON and TENSORWIRE_CODEC, or runs tests/interop/setup.sh.
  --json             prints one JSON object instead of tables
  --small            sends small tensors of the same kinds, for a quick look; Rust stages only
  --corrupt STAGE    flips one byte of what this stage sends: the run has to fail; Rust stages only
  --help             prints this

Exit status: 0 every payload was as sent, 1 one was not or something failed, 2 wrong arguments.
";

pub(crate) enum Command {
    Guard {
        program: OsString,
        args: Vec<OsString>,
    },
    Help,
    Run(Run),
    Sink,
    Stage(StageRun),
}

/// What a person may ask for.
pub(crate) struct Run {
    pub(crate) requests: u64,
    pub(crate) python: Vec<Stage>,
    pub(crate) json: bool,
    pub(crate) size: Size,
    pub(crate) corrupt: Option<Stage>,
}

pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let mut run = Run {
        requests: 12,
        python: Vec::new(),
        json: false,
        size: Size::Full,
        corrupt: None,
    };
    while let Some(arg) = args.next() {
        match text(&arg)? {
            "--corrupt" => run.corrupt = Some(stage(&value(&arg, &mut args)?)?),
            "--guard" => {
                let program = args.next().ok_or("--guard: no program")?;
                let args = args.collect();
                return Ok(Command::Guard { program, args });
            }
            "--help" | "-h" => return Ok(Command::Help),
            "--json" => run.json = true,
            "--python" => run.python = stages(&value(&arg, &mut args)?)?,
            "--requests" => run.requests = count(&value(&arg, &mut args)?)?,
            "--sink" => return Ok(Command::Sink),
            "--small" => run.size = Size::Small,
            "--stage" => {
                let stage = stage(&value(&arg, &mut args)?)?;
                return Ok(Command::Stage(StageRun {
                    stage,
                    source: value(&arg, &mut args)?,
                    out: value(&arg, &mut args)?,
                    size: run.size,
                    corrupt: run.corrupt == Some(stage),
                }));
            }
            other => return Err(format!("{other}: no such option")),
        }
    }
    if run.size == Size::Small && !run.python.is_empty() {
        return Err("--small: Python stages know the full sizes only".into());
    }
    if let Some(stage) = run.corrupt.filter(|stage| run.python.contains(stage)) {
        let name = stage.name();
        return Err(format!("--corrupt {name}: Python stages cannot"));
    }
    Ok(Command::Run(run))
}

fn text(arg: &OsString) -> Result<&str, String> {
    let shown = || format!("{}: not UTF-8", arg.display());
    arg.to_str().ok_or_else(shown)
}

fn value(option: &OsString, args: &mut impl Iterator<Item = OsString>) -> Result<String, String> {
    let missing = || format!("{}: a value is missing", option.display());
    let value = args.next().ok_or_else(missing)?;
    Ok(text(&value)?.to_owned())
}

fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count @ 1..=100_000) => Ok(count),
        _ => Err(format!("--requests {text}: not a number from 1 to 100000")),
    }
}

fn stage(name: &str) -> Result<Stage, String> {
    let unknown = || format!("{name}: the stages are encoder, denoiser and decoder");
    Stage::from_name(name).ok_or_else(unknown)
}

fn stages(names: &str) -> Result<Vec<Stage>, String> {
    if names == "all" {
        return Ok(Stage::ALL.to_vec());
    }
    names.split(',').map(stage).collect()
}
