//! Writes a message, byte for byte as Python does.

use super::extras::knows;
use super::keys::{
    ALLOC, ALLOCATED, DONE_ENDED, PUSH, PUSHED, READY, REGISTER, RESULT, STAGED, TYPE_ALONE,
};
use super::kind::Kind;
use super::types::SLOT_ID;
use super::{
    Alloc, Allocated, Control, Done, Extras, Location, Outcome, Push, Pushed, Ready, Register,
    Staged,
};
use crate::error::SchemaKey;
use crate::json::writer::Writer;
use crate::json::{Object, Str};

/// Writes the payload of a control message.
pub(super) fn put(control: &Control<'_>, writer: &mut Writer<'_>) {
    match control {
        Control::Alloc(alloc) => put_alloc(alloc, writer),
        Control::Allocated(allocated) => put_allocated(allocated, writer),
        Control::Done(done) => put_done(done, writer),
        Control::Push(push) => put_push(push, writer),
        Control::Pushed(pushed) => put_pushed(pushed, writer),
        Control::Ready(ready) => put_ready(ready, writer),
        Control::Register(register) => put_register(register, writer),
        Control::RegisterAck(ack) => {
            Members::of(writer, Kind::RegisterAck).close(&ack.extras, TYPE_ALONE);
        }
        Control::Staged(staged) => put_staged(staged, writer),
        Control::Unknown(unknown) => {
            let extras = Extras::all(unknown.message);
            Members::open(writer, unknown.msg_type).close(&extras, TYPE_ALONE);
        }
    }
}

fn put_alloc(alloc: &Alloc<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Alloc);
    members.text(SchemaKey::RequestId, alloc.request_id);
    members.number(SchemaKey::DataSize, alloc.data_size);
    members.text(SchemaKey::SourceRole, alloc.source_role);
    members.close(&alloc.extras, ALLOC);
}

fn put_allocated(allocated: &Allocated<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Allocated);
    members.text(SchemaKey::RequestId, allocated.request_id);
    members.location(&allocated.location);
    members.number(SchemaKey::SlotSize, allocated.slot_size);
    members.close(&allocated.extras, ALLOCATED);
}

fn put_done(done: &Done<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Done);
    members.text(SchemaKey::RequestId, done.request_id);
    let schema = match &done.outcome {
        Outcome::Failed(error) => {
            members.text(SchemaKey::Error, *error);
            DONE_ENDED
        }
        Outcome::Finished => {
            members.key(SchemaKey::Error);
            members.writer.put_null();
            DONE_ENDED
        }
        Outcome::Staged(staged) => {
            members.result(staged, true);
            RESULT
        }
    };
    members.close(&done.extras, schema);
}

fn put_push(push: &Push<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Push);
    members.text(SchemaKey::RequestId, push.request_id);
    members.text(SchemaKey::DestSessionId, push.dest_session_id);
    members.number(SchemaKey::DestAddr, push.dest_addr);
    members.number(SchemaKey::TransferSize, push.transfer_size);
    members.close(&push.extras, PUSH);
}

fn put_pushed(pushed: &Pushed<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Pushed);
    members.text(SchemaKey::RequestId, pushed.request_id);
    members.close(&pushed.extras, PUSHED);
}

fn put_ready(ready: &Ready<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Ready);
    members.text(SchemaKey::RequestId, ready.request_id);
    members.object(SchemaKey::Manifest, ready.manifest);
    members.number(SchemaKey::SlotOffset, ready.slot_offset);
    match ready.preallocated_slot {
        None => members.object(SchemaKey::ScalarFields, ready.scalar_fields),
        Some(slot_id) => {
            members.key(SchemaKey::ScalarFields);
            put_scalars_with_slot(ready.scalar_fields, slot_id, members.writer);
        }
    }
    members.close(&ready.extras, READY);
}

/// Python's `{**scalars, "_prealloc_slot_id": slot_id}`.
fn put_scalars_with_slot(scalars: Object<'_>, slot_id: u64, writer: &mut Writer<'_>) {
    let mut set = false;
    let mut first = true;
    let mut put_key = |key, writer: &mut Writer<'_>| {
        writer.put_raw(if first { b"{" } else { b"," });
        first = false;
        writer.put_str(key);
        writer.put_raw(b":");
    };
    for (key, value) in scalars {
        put_key(key, writer);
        if key == SLOT_ID {
            writer.put_u64(slot_id);
            set = true;
        } else {
            writer.put_value(value);
        }
    }
    if !set {
        put_key(SLOT_ID.into(), writer);
        writer.put_u64(slot_id);
    }
    writer.put_raw(b"}");
}

fn put_register(register: &Register<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Register);
    members.text(SchemaKey::Role, register.role);
    members.text(SchemaKey::SessionId, register.session_id);
    members.number(SchemaKey::PoolPtr, register.pool_ptr);
    members.number(SchemaKey::PoolSize, register.pool_size);
    members.text(SchemaKey::WorkEndpoint, register.work_endpoint);
    members.key(SchemaKey::PreallocatedSlots);
    register.preallocated_slots.put(members.writer);
    members.close(&register.extras, REGISTER);
}

fn put_staged(staged: &Staged<'_>, writer: &mut Writer<'_>) {
    let mut members = Members::of(writer, Kind::Staged);
    members.text(SchemaKey::RequestId, staged.request_id);
    if let Some(for_decoder) = staged.staged_for_decoder {
        members.result(staged, for_decoder);
    } else {
        members.number(SchemaKey::DataSize, staged.data_size);
        members.object(SchemaKey::Manifest, staged.manifest);
        members.location(&staged.location);
        if let Some(scalars) = staged.scalar_fields {
            members.object(SchemaKey::ScalarFields, scalars);
        }
    }
    members.close(&staged.extras, STAGED);
}

/// An object that is being written, its type first.
pub(super) struct Members<'w, 'b> {
    writer: &'w mut Writer<'b>,
}

impl<'w, 'b> Members<'w, 'b> {
    fn of(writer: &'w mut Writer<'b>, kind: Kind) -> Self {
        Self::open(writer, kind.name().into())
    }

    pub(super) fn open(writer: &'w mut Writer<'b>, msg_type: Str<'_>) -> Self {
        writer.put_raw(br#"{"msg_type":"#);
        writer.put_str(msg_type);
        Self { writer }
    }

    fn key(&mut self, key: SchemaKey) {
        self.plain_key(key.name());
    }

    /// A key that needs no escapes.
    fn plain_key(&mut self, key: &str) {
        self.writer.put_raw(b",\"");
        self.writer.put_raw(key.as_bytes());
        self.writer.put_raw(b"\":");
    }

    pub(super) fn text(&mut self, key: SchemaKey, text: Str<'_>) {
        self.named(key.name(), text);
    }

    /// A text under a key that is of no schema.
    pub(super) fn named(&mut self, key: &str, text: Str<'_>) {
        self.plain_key(key);
        self.writer.put_str(text);
    }

    fn number(&mut self, key: SchemaKey, number: u64) {
        self.key(key);
        self.writer.put_u64(number);
    }

    fn object(&mut self, key: SchemaKey, object: Object<'_>) {
        self.key(key);
        self.writer.put_value(object.as_value());
    }

    fn location(&mut self, location: &Location<'_>) {
        self.text(SchemaKey::SessionId, location.session_id);
        self.number(SchemaKey::PoolPtr, location.pool_ptr);
        self.number(SchemaKey::SlotOffset, location.slot_offset);
    }

    /// The layout of those that run a role in the middle, after the request.
    fn result(&mut self, staged: &Staged<'_>, for_decoder: bool) {
        self.key(SchemaKey::StagedForDecoder);
        self.writer.put_bool(for_decoder);
        self.location(&staged.location);
        self.number(SchemaKey::DataSize, staged.data_size);
        self.object(SchemaKey::Manifest, staged.manifest);
        if let Some(scalars) = staged.scalar_fields {
            self.object(SchemaKey::ScalarFields, scalars);
        }
    }

    /// Writes the extras that are not of the schema, and the end.
    pub(super) fn close(self, extras: &Extras<'_>, schema: &[SchemaKey]) {
        for (key, value) in extras.iter() {
            if !knows(schema, key) {
                self.writer.put_raw(b",");
                self.writer.put_str(key);
                self.writer.put_raw(b":");
                self.writer.put_value(value);
            }
        }
        self.writer.put_raw(b"}");
    }
}
