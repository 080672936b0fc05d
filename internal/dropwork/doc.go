// Package dropwork works on one drop folder: it watches it, claims settled folders or, in a drop of single PDFs, settled files, and is the
// engine's packer and mover for what was claimed there, by the rules of the drop's route. It also finds which rejected folder a new one corrects, and records what lies in the folder and was not taken.
//
// It never decides the state of an entry: it gives the ledger an event for each claim, and the engine asks for everything else. It renames
// and removes nothing itself: package drop does, and checks first whose the folder is. A drop folder that is away, read-only or another
// vaultd's is left alone and opened again when it is back.
//
// A claim is durable before its entry is asked for. After a crash between the
// two the next start finds the claimed folder without an entry and adopts it
// under the same key. If nobody knows what a failed sync left on disk, the
// process ends.
package dropwork
