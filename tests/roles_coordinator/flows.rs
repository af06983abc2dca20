//! Requests from their beginning to their end.

use std::time::Duration;

use tensorwire::transfer::coordinator::{Coordinator, Policy, Settings, Topology};
use tensorwire::transfer::pool::Pool;
use tensorwire::transfer::worker::{self, Site};
use tensorwire::transfer::{Instance, RequestId, Role};

use super::script::{head, is_whole, play, workers};

#[test]
fn a_request_passes_all_roles_by_slots_that_are_allocated() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        request r1                  | encoder0 work r1
        encoder staged r1 8 {"a":1} | denoiser0 alloc r1 8 from encoder
        denoiser allocated r1 64 16 | encoder0 push r1 8 1064 to denoiser-session
        encoder pushed r1           | denoiser0 ready r1 64 {"a":1}
        denoiser done r1 0          | decoder0 alloc r1 0 from denoiser
        decoder allocated r1 0 1    | denoiser0 push r1 0 1000 to decoder-session
        denoiser pushed r1          | decoder0 ready r1 0 {}
        decoder reply r1            | =finished r1
        "#,
    );
    is_whole(&head);
    assert_eq!(head.role_statistics(Role::Decoder).unwrap().slow_path, 1);
    assert_eq!(head.statistics().finished, 1);
}

#[test]
fn a_request_passes_all_roles_by_preallocated_slots_which_come_back_whole() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        denoiser register 0 n 0+8 64+16 | =registered 2
        decoder register 0 d 64+16      | =registered 1
        "#,
    );
    for _ in 0..3 {
        // What is moved is shorter than the slot, and the slot is as long as ever.
        play(
            &mut head,
            r#"
            request r1                    | encoder0 work r1
            encoder staged r1 9 {"a":1}   | encoder0 push r1 9 1064 to n
            encoder pushed r1             | denoiser0 ready r1 64 {"a":1,"_prealloc_slot_id":51}
            denoiser done r1 3            | denoiser0 push r1 3 1064 to d
            denoiser pushed r1            | decoder0 ready r1 64 {"_prealloc_slot_id":50}
            request r2                    | encoder0 work r2
            encoder staged r2 16 {}       | encoder0 push r2 16 1064 to n
            encoder pushed r2             | denoiser0 ready r2 64 {"_prealloc_slot_id":51}
            denoiser done r2 3            | decoder0 alloc r2 3 from denoiser
            decoder reply r1              | =finished r1
            decoder failed r2             | denoiser0 abort r2 another role failed, =failed r2: decoder error: out of memory
            "#,
        );
        is_whole(&head);
    }
    let statistics = head.role_statistics(Role::Decoder).unwrap();
    assert_eq!((statistics.fast_path, statistics.slow_path), (3, 3));
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 2);
}

#[test]
fn a_split_encoder_does_images_only_where_there_are_some() {
    let of = |role| workers(role, 1, 1);
    let topology = Topology::with_split_encoder(
        of(Role::PromptEncoder),
        of(Role::ImageEncoder),
        of(Role::Denoiser),
        of(Role::Decoder),
    );
    let mut head = Coordinator::new(topology, Settings::new()).unwrap();
    play(
        &mut head,
        r#"
        encoder register 0 s 0+8                               | !no encoder in this pipeline
        image_encoder register 0 i 0+8                         | =registered 1
        request r1                                             | prompt_encoder0 work r1
        prompt_encoder staged r1 8 {"image_path":["a.png"]}    | prompt_encoder0 push r1 8 1000 to i
        prompt_encoder pushed r1                               | image_encoder0 ready r1 0 {"image_path":["a.png"],"_prealloc_slot_id":50}
        request r2                                             | prompt_encoder0 work r2
        prompt_encoder staged r2 8 {"image_path":[]}           | denoiser0 alloc r2 8 from prompt_encoder
        image_encoder staged r1 8 {"b":1}                      |
        prompt_encoder error r2                                | denoiser0 abort r2 another role failed, denoiser0 alloc r1 8 from image_encoder, =failed r2: prompt_encoder error: out of memory
        image_encoder failed r1                                | denoiser0 abort r1 another role failed, =failed r1: image_encoder error: out of memory
        denoiser allocated r2 0 8                              |
        denoiser failed r1                                     |
        "#,
    );
    is_whole(&head);
}

#[test]
fn queues_are_first_in_first_out_and_both_policies_are_pythons() {
    let round_robin = r#"
        request r1 | encoder0 work r1
        request r2 | encoder1 work r2
        request r3 | encoder0 work r3
        request r4 | encoder1 work r4
        request r5 |
        request r6 |
        encoder error r2 | encoder1 work r5, =failed r2: encoder error: out of memory
        encoder error r1 | encoder0 work r6, =failed r1: encoder error: out of memory
    "#;
    // The turn moves with every choice, also with the two in vain.
    let most_free = r#"
        request r1 | encoder0 work r1
        request r2 | encoder1 work r2
        request r3 | encoder0 work r3
        request r4 | encoder1 work r4
        encoder error r1 | =failed r1: encoder error: out of memory
        encoder error r2 | =failed r2: encoder error: out of memory
        request r5 | encoder0 work r5
        request r6 | encoder1 work r6
        request r7 |
        encoder error r6 | encoder1 work r7, =failed r6: encoder error: out of memory
        encoder error r3 | =failed r3: encoder error: out of memory
        encoder error r4 | =failed r4: encoder error: out of memory
        request r8 | encoder0 work r8
    "#;
    for (policy, script) in [
        (Policy::RoundRobin, round_robin),
        (Policy::MostFree, most_free),
    ] {
        let mut head = head(2, Settings::new().with_policy(policy));
        play(&mut head, script);
    }
}

#[test]
fn a_cancelled_or_late_request_leaves_the_queue() {
    let mut head = head(1, Settings::new().with_max_requests(4));
    play(
        &mut head,
        r#"
        request r1 | encoder0 work r1
        time 10    |
        request r2 | encoder0 work r2
        request r3 |
        request r4 |
        request r5 | !4 requests are under way already
        request r4 | !a request of this id is under way
        cancel r3  | =failed r3: cancelled
        cancel r3  |
        time 600   | encoder0 abort r1 timed out, encoder0 work r4, =failed r1: not completed within 600 s
        time 610   | encoder0 abort r2 timed out, encoder0 abort r4 timed out, =failed r2: not completed within 600 s, =failed r4: not completed within 600 s
        encoder staged r1 8 |
        encoder staged r1 8 | !unknown request
        encoder error r2    |
        time 1210           |
        "#,
    );
    is_whole(&head);
    let statistics = head.statistics();
    assert_eq!((statistics.cancelled, statistics.timed_out), (1, 3));
}

#[test]
fn a_worker_that_registers_anew_loses_its_requests_and_its_old_slots() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        request r1                       | encoder0 work r1
        encoder staged r1 8              | denoiser0 alloc r1 8 from encoder
        denoiser register 0 denoiser-session 0+8 8+8 | =registered 2
        denoiser allocated r1 16 8       | encoder0 push r1 8 1016 to denoiser-session
        request r2                       | encoder0 work r2
        encoder staged r2 8              | encoder0 push r2 8 1000 to denoiser-session
        encoder pushed r2                | denoiser0 ready r2 0 {"_prealloc_slot_id":50}
        request r3                       | encoder0 work r3
        denoiser register 0 denoiser-session 0+8 8+8 |
        denoiser register 0 n2 0+8       | denoiser0 abort r2 another worker restarted, encoder0 abort r1 another worker restarted, =again 1, =failed r2: denoiser 0 restarted, =failed r1: denoiser 0 restarted
        "#,
    );
    // What the old slots were lent for says nothing about the new.
    play(
        &mut head,
        r#"
        encoder pushed r1                | denoiser0 abort r1 the request is over
        denoiser done r2 8               | !unknown request
        encoder staged r3 8              | encoder0 push r3 8 1000 to n2
        encoder pushed r3                | denoiser0 ready r3 0 {"_prealloc_slot_id":50}
        denoiser done r3 8               | decoder0 alloc r3 8 from denoiser
        decoder register 0 d 0+8         | =registered 1
        encoder register 0 e             | =registered 0
        encoder register 0 e2            | =again 0
        decoder register 0 d2 0+8        | denoiser0 abort r3 another worker restarted, decoder0 abort r3 another worker restarted, =again 1, =failed r3: decoder 0 restarted
        "#,
    );
    is_whole(&head);
    assert_eq!(head.statistics().worker_restarted, 3);
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 1);
}

#[test]
fn retries_start_from_the_work_under_an_id_of_their_own() {
    let settings = Settings::new()
        .with_retries(2)
        .with_timeout(Duration::from_secs(100))
        .with_attempt_timeout(Duration::from_secs(40));
    let mut head = head(1, settings);
    play(
        &mut head,
        r#"
        denoiser register 0 n1 0+8 | =registered 1
        request r1                 | encoder0 work r1
        request r2                 | encoder0 work r2
        request r3                 |
        encoder staged r1 8        | encoder0 push r1 8 1000 to n1
        request r1~1               |
        encoder register 0 e1      | =registered 0
        encoder register 0 e2      | encoder0 abort r2 another worker restarted, encoder0 abort r1 another worker restarted, encoder0 work r1~2, encoder0 work r2~1, =again 0, =retrying r2 1, =retrying r1 2
        request r1                 | !a request of this id is under way
        encoder error r1           | !unknown request
        encoder pushed r2          | !unknown request
        encoder staged r2~1 8      | encoder0 push r2~1 8 1000 to n1
        encoder pushed r2~1        | denoiser0 ready r2~1 0 {"_prealloc_slot_id":50}, encoder0 work r3
        time 40                    | encoder0 abort r3 timed out, denoiser0 abort r2~1 timed out, encoder0 work r2~2, =retrying r3 1, =retrying r2 2
        encoder error r1~2         | encoder0 work r3~1, =failed r1: encoder error: out of memory
        time 100                   | encoder0 abort r3~1 timed out, encoder0 abort r2~2 timed out, =failed r3: not completed within 100 s, =failed r1~1: not completed within 100 s, =failed r2: not completed within 100 s
        "#,
    );
    assert_eq!(head.statistics().retried, 4);
    head.handle_timeout(Duration::from_secs(10_000));
    is_whole(&head);
}

#[test]
fn a_late_output_of_a_forgotten_request_is_dropped_by_its_worker() {
    let mut head = head(2, Settings::new());
    play(
        &mut head,
        "encoder register 1 encoder-session | =registered 0
         denoiser register 0 denoiser-session | =registered 0
         encoder staged r1 8 | encoder1 abort r1 unknown request, !unknown request
         denoiser allocated r1 0 8 | denoiser0 abort r1 unknown request, !unknown request
         encoder pushed r1 | !unknown request
         denoiser allocated r1 993 8 | denoiser0 abort r1 unknown request, !unknown request
         request r2 | encoder0 work r2
         encoder staged r2 8 | denoiser0 alloc r2 8 from encoder
         denoiser allocated r2 993 8 | !slot of 8 bytes at 993 reaches past its pool of 1000 bytes
         denoiser allocated r2 992 8 | encoder0 push r2 8 1992 to denoiser-session",
    );
}

#[test]
fn a_slot_id_in_the_scalars_of_a_sender_reaches_no_receiver() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        denoiser register 0 denoiser-session 0+8 | =registered 1
        request r1 | encoder0 work r1
        encoder staged r1 9 {"_prealloc_slot_id":50,"a":1} | denoiser0 alloc r1 9 from encoder
        denoiser allocated r1 64 16 | encoder0 push r1 9 1064 to denoiser-session
        encoder pushed r1 | denoiser0 ready r1 64 {"a":1}
        "#,
    );
}

#[test]
fn a_request_that_is_cancelled_and_comes_again_waits_behind_the_others() {
    let topology = Topology::new(
        workers(Role::Encoder, 1, 1),
        workers(Role::Denoiser, 1, 1),
        workers(Role::Decoder, 1, 1),
    );
    let mut head = Coordinator::new(topology, Settings::new()).unwrap();
    play(
        &mut head,
        "request r1 | encoder0 work r1
         request r2 |
         request r3 |
         request r4 |
         cancel r3 | =failed r3: cancelled
         request r3 |
         encoder error r1 | encoder0 work r2, =failed r1: encoder error: out of memory
         encoder error r2 | encoder0 work r4, =failed r2: encoder error: out of memory
         encoder error r4 | encoder0 work r3, =failed r4: encoder error: out of memory
         encoder error r3 | =failed r3: encoder error: out of memory",
    );
    is_whole(&head);
}

#[test]
fn what_a_worker_says_of_a_request_before_is_not_taken_for_the_next() {
    let now = Duration::ZERO;
    let mut head = head(1, Settings::new());
    let site = Site::new("e", 0, Pool::new(1 << 20).unwrap(), "encoder0");
    let mut encoder = Instance::new(Role::Encoder, site, worker::Settings::new()).unwrap();
    let id = RequestId::from("r1");
    let mut taken = 0;
    for _ in 0..3 {
        taken += usize::from(head.handle_request(&id, b"work".to_vec(), now).is_ok());
        head.cancel(&id, now);
    }
    assert_eq!(taken, 1);
    let mut buffer = Vec::new();
    while let Some(outgoing) = head.poll_transmit(&mut buffer) {
        encoder.handle_frames(&outgoing.frames(), now).unwrap();
    }
    while let Some(outgoing) = encoder.poll_transmit(&mut buffer) {
        let frames = outgoing.frames(&buffer);
        head.handle_frames(Role::Encoder, &frames, now).unwrap();
    }
    is_whole(&head);
    head.handle_request(&id, b"work".to_vec(), now).unwrap();
}
