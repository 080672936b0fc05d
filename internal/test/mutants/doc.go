// Package mutants plants mistakes in a copy of the program, one at a time, and expects the tests to find each of them.
//
// The mistakes are those that the promises of docs/guarantees.md exist to exclude: an upload repeated blindly, a source
// disposed of too early, an error that is not looked at. A mutant that lives says that a promise is written down but not
// held. The table testdata/mutants holds them: the ordinary tests see to it that each mutant still fits
// its place, and "make mutants" plants them all, which takes its time.
//
// It holds nothing but tests, and changes nothing of the tree it runs in but testdata/killers, which names the test that killed each mutant and makes
// the next run quick.
package mutants
