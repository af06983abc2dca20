//! A control message before it is written.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::kinds::Kind;
use crate::error::SchemaKey;
use crate::testing::choices::Choose;
use crate::testing::text::{Members, Spelling, scalars};
use crate::testing::{FilledSlot, Generated, Parameters};
use crate::transfer::Role;

/// A control message before it is written.
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) request_id: Option<String>,
    pub(super) members: Members,
    pub(super) spelling: Spelling,
}

impl Draft {
    pub(super) fn generate(
        choices: &mut dyn Choose,
        parameters: &Parameters,
        kinds: &[Kind],
    ) -> Self {
        let spelling = Spelling::choose(choices, parameters);
        let kind = choices.of(kinds).unwrap_or(Kind::Pushed);
        let mut draft = Self {
            kind,
            request_id: None,
            members: Members::default(),
            spelling,
        };
        let quoted = spelling.quoted(kind.msg_type(), choices);
        draft.members.push(MSG_TYPE, quoted);
        if !matches!(kind, Kind::Register | Kind::RegisterAck) {
            draft.request(choices);
        }
        draft.rest(kind, choices, parameters);
        draft
    }

    /// What stands after the type and the request, in Python's order.
    fn rest(&mut self, kind: Kind, choices: &mut dyn Choose, parameters: &Parameters) {
        match kind {
            Kind::Alloc => {
                self.number("data_size", choices);
                let role = choices.of(Role::ALL).map_or("", Role::name);
                self.text("source_role", role, choices);
            }
            Kind::Allocated => {
                self.location(choices);
                self.number("slot_size", choices);
            }
            Kind::DoneFailed => self.text("error", choices.text(ERRORS), choices),
            Kind::DoneFinished => self.members.push("error", "null"),
            Kind::DoneStaged | Kind::StagedImage => {
                let for_decoder = kind == Kind::DoneStaged;
                self.members
                    .push("staged_for_decoder", for_decoder.to_string());
                self.location(choices);
                self.number("data_size", choices);
                self.manifest(choices, parameters);
                self.scalars(choices, parameters);
            }
            Kind::Push => {
                self.text("dest_session_id", choices.text(SESSIONS), choices);
                self.number("dest_addr", choices);
                self.number("transfer_size", choices);
            }
            Kind::Pushed | Kind::RegisterAck => {}
            Kind::Ready => {
                self.manifest(choices, parameters);
                self.number("slot_offset", choices);
                self.scalars(choices, parameters);
            }
            Kind::Register => {
                let role = choices.of(Role::ALL).map_or("", Role::name);
                self.text("role", role, choices);
                self.text("session_id", choices.text(SESSIONS), choices);
                self.number("pool_ptr", choices);
                self.number("pool_size", choices);
                self.text("work_endpoint", choices.text(ENDPOINTS), choices);
                let slots = 0..choices.up_to(3);
                let slots: Vec<_> = slots.map(|_| self.slot(choices)).collect();
                let slots = self.spelling.array(&slots, choices);
                self.members.push("preallocated_slots", slots);
            }
            Kind::Staged => {
                self.number("data_size", choices);
                self.manifest(choices, parameters);
                self.location(choices);
                // The oldest generation has none.
                if !choices.one_in(4) {
                    self.scalars(choices, parameters);
                }
            }
            Kind::Unknown => {
                self.text("transfer_id", choices.text(SESSIONS), choices);
                self.text("reason", choices.text(ERRORS), choices);
            }
        }
    }

    fn request(&mut self, choices: &mut dyn Choose) {
        let request = choices.text(REQUESTS);
        self.text("request_id", request, choices);
        self.request_id = Some(request.to_string());
    }

    fn text(&mut self, key: &str, text: &str, choices: &mut dyn Choose) {
        let quoted = self.spelling.quoted(text, choices);
        self.members.push(key, quoted);
    }

    fn number(&mut self, key: &str, choices: &mut dyn Choose) {
        self.members.push(key, number(choices));
    }

    fn location(&mut self, choices: &mut dyn Choose) {
        self.text("session_id", choices.text(SESSIONS), choices);
        self.number("pool_ptr", choices);
        self.number("slot_offset", choices);
    }

    fn manifest(&mut self, choices: &mut dyn Choose, parameters: &Parameters) {
        let slot = FilledSlot::generate(choices, parameters);
        self.members.push("manifest", slot.manifest());
    }

    fn scalars(&mut self, choices: &mut dyn Choose, parameters: &Parameters) {
        let scalars = scalars(choices, parameters, self.spelling);
        self.members.push("scalar_fields", scalars);
    }

    fn slot(&self, choices: &mut dyn Choose) -> String {
        let mut members = Members::default();
        for key in SLOT {
            members.push(key.name(), number(choices));
        }
        members.of_schema(self.spelling, choices)
    }
}

/// The keys of a preallocated slot; all have to be there.
pub(super) const SLOT: &[SchemaKey] = &[
    SchemaKey::Offset,
    SchemaKey::Size,
    SchemaKey::SlotId,
    SchemaKey::Addr,
];

const MSG_TYPE: &str = "msg_type";
const REQUESTS: &[&str] = &["r1", "wan-test-001", "", "caf\u{e9}", "a\"b\\c\n"];
const SESSIONS: &[&str] = &["127.0.0.1:7001", "h:1", "", "\u{1f600}"];
const ENDPOINTS: &[&str] = &["tcp://127.0.0.1:5556", ""];
const ERRORS: &[&str] = &["out of memory", "", "line 1\nline 2", "\u{7f}"];

/// An address, an offset or a length.
fn number(choices: &mut dyn Choose) -> &'static str {
    choices.text(&[
        "0",
        "1",
        "512",
        "1048576",
        "4294967296",
        "9223372036854775808",
        "18446744073709551615",
    ])
}
