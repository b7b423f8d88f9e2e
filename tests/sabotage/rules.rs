//! Which tests notice that a rule is broken.

/// One rule.
pub struct Rule {
    /// The feature of `inject/Cargo.toml` that breaks it is `sabotage-` and this.
    pub name: &'static str,
    /// The tests that must fail then: the test program of `tests/`, and the test's name in it.
    pub red: &'static [(&'static str, &'static str)],
    /// Tried with every `cargo test`, not by `make sabotage` alone.
    pub always: bool,
}

const fn rule(name: &'static str, red: &'static [(&'static str, &'static str)]) -> Rule {
    Rule { name, red, always: false }
}

const fn always(name: &'static str, red: &'static [(&'static str, &'static str)]) -> Rule {
    Rule { name, red, always: true }
}

pub const RULES: &[Rule] = &[
    // System calls on mapped memory.
    always(
        "buffers-stay-closed",
        &[("hostile", "01_write_from_mapping.c"), ("hostile", "01_stdio.c"), ("hostile", "02_receive_into_mapping.c")],
    ),
    rule(
        "words-not-looked-at",
        &[
            ("hostile", "01_paths.c"),
            ("hostile", "01_rarer_calls.c"),
            ("hostile", "01_rarest_calls.c"),
            ("hostile", "01_calls_of_administrators.c"),
        ],
    ),
    rule("no-pins", &[("hostile", "01_calls_while_others_rearm.c"), ("hostile", "01_piece_by_piece.c")]),
    rule("lists-not-kept-open", &[("hostile", "01_lists_while_others_rearm.c")]),
    rule("efault-not-retried", &[("hostile", "01_forked_during_a_call.c")]),
    rule("calls-unwatched", &[("hostile", "01_mapped_over_a_waiting_call.c")]),
    rule("errno-of-calls", &[("hostile", "28_registers_and_errno.c"), ("hostile", "28_errno_of_calls.c")]),
    rule("looked-up-past-us", &[("hostile", "29_functions_looked_up.c")]),
    rule("ours-whoever-looks", &[("hostile", "29_other_preloaded_libraries.sh")]),
    // Signal context.
    always(
        "malloc-in-handler",
        &[
            ("hostile", "28_registers_and_errno.c"),
            ("hostile", "17_locks_are_held.c"),
            ("reader", "library::little_is_imported"),
        ],
    ),
    rule("lock-in-handler", &[("hostile", "28_registers_and_errno.c"), ("reader", "library::little_is_imported")]),
    rule("thread-local-in-handler", &[("reader", "library::no_thread_local_storage_is_used")]),
    rule("errno-in-handler", &[("hostile", "28_registers_and_errno.c")]),
    rule("registers-changed", &[("hostile", "28_registers_and_errno.c")]),
    rule("deep-stack", &[("hostile", "12_stacks.c"), ("hostile", "37_coroutines.c")]),
    rule("data-read-in-handler", &[("hostile", "31_truncated_file.c")]),
    rule("fault-in-handler", &[("hostile", "16_threads_on_one_checkpoint.c")]),
    rule("late-faults-are-the-programs", &[("hostile", "16_threads_on_one_checkpoint.c")]),
    // The program's signals.
    always(
        "segv-can-be-blocked",
        &[("hostile", "11_masks.c"), ("hostile", "11_mask_of_a_context.c"), ("hostile", "30_cancelled_waits.c")],
    ),
    rule("sent-signals-trip", &[("hostile", "07_sent_signals.c")]),
    rule("writes-swallowed", &[("hostile", "06_write_to_read_only_checkpoint.c")]),
    rule("aborts-unnoticed", &[("hostile", "34_aborted.c")]),
    rule("death-in-other-words", &[("hostile", "05_deaths.c")]),
    rule("own-handler-shown", &[("hostile", "08_old_handlers.c")]),
    rule("handler-not-called", &[("hostile", "06_write_to_read_only_checkpoint.c"), ("hostile", "10_leave_by_jump.c")]),
    rule("handler-flags", &[("hostile", "09_handler_matrix.c")]),
    rule("handler-mask", &[("hostile", "09_handler_matrix.c")]),
    always("handler-stack", &[("hostile", "09_handler_matrix.c"), ("hostile", "12_stacks.c")]),
    always(
        "small-stacks-unnoticed",
        &[("hostile", "12_no_room_on_alternate_stack.c"), ("hostile", "12_alternate_stack_in_mapping.c")],
    ),
    rule("pending-lost", &[("hostile", "11_pending.c")]),
    rule("raw-handler-taken-over", &[("hostile", "13_raw_handler_before.c")]),
    rule(
        "raw-handler-unnoticed",
        &[("hostile", "13_raw_handler_after.c"), ("hostile", "13_raw_handler_of_a_library.c")],
    ),
    // Memory.
    rule("mapped-twice", &[("hostile", "18_mapped_by_two_threads.sh")]),
    rule("armed-after-letting-go", &[("hostile", "18_mapped_by_two_threads.sh")]),
    rule("munmap-unnoticed", &[("hostile", "18_address_reuse.c")]),
    always(
        "mprotect-unnoticed",
        &[
            ("hostile", "19_protection_is_the_programs.c"),
            ("hostile", "19_unusual_changes.c"),
            ("hostile", "04_pinning_calls.c"),
            ("hostile", "04_everything_locked.c"),
            ("hostile", "35_locked_and_mixed.c"),
        ],
    ),
    rule("unmap-does-not-wait", &[("hostile", "18_address_reuse.c")]),
    rule("guard-before-registration", &[("hostile", "18_mapped_under_readers.c")]),
    rule("private-guards", &[("hostile", "20_private_writes.c")]),
    rule("parts-stay", &[("hostile", "20_written_apart.c")]),
    rule("mappings-run-out", &[("hostile", "21_no_kernel_mappings_left.c")]),
    rule("closed-again-at-once", &[("hostile", "32_one_instruction_several_pages.c")]),
    // Processes.
    rule("forks-unnoticed", &[("hostile", "22_fork_from_many_threads.c")]),
    rule("ours-is-inherited", &[("hostile", "23_vfork_signals.c")]),
    rule("guests-enrol", &[("hostile", "22_vfork_in_a_forked_child.c"), ("hostile", "22_vfork_child_maps_first.c")]),
    rule(
        "settings-undone",
        &[("hostile", "23_action_set_while_spawning.c"), ("hostile", "23_handler_set_at_any_moment.c")],
    ),
    rule("held-threads-not-waited-for", &[("hostile", "23_spawning_beside_a_held_thread.c")]),
    rule("library-for-everybody", &[("hostile", "24_sanitizer_unseen.c"), ("hostile", "24_sanitizer_child.c")]),
    rule("forks-do-not-wait", &[("hostile", "22_fork_while_mapping.c")]),
    rule("descriptors-kept", &[("hostile", "26_descriptors_are_the_programs.c")]),
    rule("filters-unnoticed", &[("hostile", "27_filter_set_after_start.c")]),
    rule(
        "raw-calls-unnoticed",
        &[
            ("hostile", "03_go_is_recognized.c"),
            ("hostile", "03_ring_is_recognized.c"),
            ("hostile", "04_pinning_device.c"),
            ("hostile", "04_device_of_a_child.c"),
        ],
    ),
    rule("waits-for-the-optimizer", &[("hostile", "25_optimizer_stands_still.c")]),
    rule("optimizer-death-unnoticed", &[("filling", "optimizer::a_killed_optimizer_is_outlived_and_replaced")]),
    rule(
        "unserved-children-forgotten",
        &[
            ("filling", "queue::children_that_are_not_heard_of_are_counted"),
            ("filling", "queue::children_that_were_not_heard_of_are_served_later"),
        ],
    ),
];
