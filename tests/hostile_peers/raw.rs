//! Connections without a library: bytes as we like.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A stream to an endpoint of any backend.
pub(crate) enum Raw {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Raw {
    pub(crate) fn connect(endpoint: &str) -> Self {
        match endpoint.split_once("://").unwrap() {
            ("tcp", address) => Self::Tcp(TcpStream::connect(address).unwrap()),
            (_, path) => Self::Unix(UnixStream::connect(path).unwrap()),
        }
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            Self::Unix(stream) => stream.set_read_timeout(Some(patience)),
        }
        .unwrap();
    }

    /// Makes a ZeroMQ PUSH peer of the stream.
    pub(crate) fn shake_hands_as_push(&mut self) {
        use crate::Backend as _;
        self.write_all(crate::zmq::Zmq::GREETING).unwrap();
        self.read_exact(&mut [0; 64]).unwrap();
        let ready = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
        self.write_all(ready).unwrap();
        // Their READY: flags, length, as many bytes. Before it they take no message.
        let mut head = [0; 2];
        self.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(head[1])];
        self.read_exact(&mut body).unwrap();
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
