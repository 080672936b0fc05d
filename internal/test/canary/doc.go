// Package canary holds nothing but a test: it runs the whole test suite and looks through everything that the suite
// writes, to standard output and to files, for the secrets that its fixtures use. It is slow and therefore waits until
// it is asked for (make canary).
//
// It never changes a file and uses no other package. The variable allowed lists the places where a secret may be, with the reason. As root it
// sees every file at the moment it is closed, however soon it is removed; else it sees what is left at the end, and
// says so.
package canary
