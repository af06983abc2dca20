//! Messages for tests of yours: valid ones, and ones with one thing wrong.
