// Package statedir gives the state directory of one vaultd: the lock that lets one process at a time work in it, the folders that
// vaultd has of its own there, and its ledger for a command that works while no daemon runs.
//
// It follows no link to a folder or a file of vaultd's own, and it removes nothing. It never waits for another daemon.
//
// The kernel gives the lock back when the process dies. A folder that was made before a crash is there and empty, and the next start
// opens it.
package statedir
