// Package mutants plants mistakes in the program, one at a time, and expects
// the tests to find each of them.
//
// The mistakes are those that the promises of docs/guarantees.md exclude: an
// upload repeated blindly, a source disposed of too early, an error that is
// ignored. A mutant that lives shows a promise without a test.
//
// The table testdata/mutants lists them. The ordinary tests check that each
// fits its place and compiles; "make mutants" plants them. A mutant is planted
// by an overlay of the go command: the files of the tree stay as they are.
//
// The package contains only tests. They write one file of the tree,
// testdata/killers: the test that killed each mutant, which is run first and
// alone the next time.
package mutants
