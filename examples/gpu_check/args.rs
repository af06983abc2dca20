//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Checks the CUDA adapter on a device, and measures it.

usage: gpu_check [OPTION...]

  --device N       which device (0)
  --json           prints one JSON object instead of tables
  --no-bench       the checks alone
  --no-checks      the bench alone
  --only WORD      only the checks and tables whose name has this word in it
  --python PATH    the Python whose torch is measured as well; else TENSORWIRE_PYTHON, else python3
  --small          payloads of up to 1 MiB, for drivers that are slow
  --help           prints this

Exit status: 0 all checks passed and the bars were met, 1 a check failed, 2 wrong arguments, 3 no usable device,
4 all checks passed and a bar was missed.
";

pub(crate) enum Command {
    Help,
    Run(Run),
}

/// What a person may ask for.
pub(crate) struct Run {
    pub(crate) device: usize,
    pub(crate) json: bool,
    pub(crate) checks: bool,
    pub(crate) bench: bool,
    only: Option<String>,
    pub(crate) python: PathBuf,
    pub(crate) small: bool,
}

impl Run {
    /// Whether what has this name was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|word| name.contains(word))
    }
}

pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let python = std::env::var_os("TENSORWIRE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut run = Run {
        device: 0,
        json: false,
        checks: true,
        bench: true,
        only: None,
        python: python.into(),
        small: false,
    };
    while let Some(arg) = args.next() {
        match text(&arg)? {
            "--device" => {
                let number = value(&arg, &mut args)?;
                let number = text(&number)?;
                run.device = number
                    .parse()
                    .map_err(|_| format!("--device {number}: not a number"))?;
            }
            "--help" | "-h" => return Ok(Command::Help),
            "--json" => run.json = true,
            "--no-bench" => run.bench = false,
            "--no-checks" => run.checks = false,
            "--only" => run.only = Some(text(&value(&arg, &mut args)?)?.to_owned()),
            "--python" => run.python = value(&arg, &mut args)?.into(),
            "--small" => run.small = true,
            other => return Err(format!("{other}: no such option")),
        }
    }
    Ok(Command::Run(run))
}

fn text(arg: &OsString) -> Result<&str, String> {
    arg.to_str()
        .ok_or_else(|| format!("{}: not UTF-8", arg.to_string_lossy()))
}

fn value(arg: &OsString, args: &mut impl Iterator<Item = OsString>) -> Result<OsString, String> {
    args.next()
        .ok_or_else(|| format!("{}: no value", arg.to_string_lossy()))
}
