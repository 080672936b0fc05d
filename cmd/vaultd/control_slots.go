package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"vaultd/internal/present"
)

const (
	maxCommands = 16               // at once, for each of the two groups of users
	maxReserve  = 4                // more, for a quick question while all others are in use
	maxArriving = 64               // connections of each group whose request did not arrive yet
	maxLists    = 1                // reports at once that compare with a list, for each of the two groups: a list may take 150 MB
	quickTime   = 30 * time.Second // for a quick question in a reserve slot
)

// commandSlots bounds the commands of one group of users. Owners and members have slots of their own, and a reserve is kept for quick
// questions: so an administrator can always ask for the status, whatever others ask and however many commands hang.
type commandSlots struct {
	arriving, running, reserve, lists chan struct{}
}

func newCommandSlots() commandSlots {
	return commandSlots{make(chan struct{}, maxArriving), make(chan struct{}, maxCommands), make(chan struct{}, maxReserve), make(chan struct{}, maxLists)}
}

// acquireSlot takes a slot without waiting. release gives it back; it is nil where no slot is free.
func acquireSlot(slots chan struct{}) (release func()) {
	select {
	case slots <- struct{}{}:
		return sync.OnceFunc(func() { <-slots })
	default:
		return nil
	}
}

// quickCommands may use the reserve: they tell the status.
var quickCommands = []string{"status", "version"}

const (
	tooMany      = "too many commands at once; try again in a moment"
	tooManyLists = "another report that compares with a list is being made, and a list takes much memory; try again when it is done"
)

// admitPeer answers a client that may give commands, while a slot is free.
func (s *commandServer) admitPeer(ctx context.Context, conn *net.UnixConn, p peer) {
	if !s.mayGiveCommands(p) {
		refuseClient(conn, exitRights, fmt.Sprintf("%s may not give commands to this vaultd; root, its own user and members of access.groups may", present.UserName(p.uid)))
		return
	}
	slots := s.members
	if s.isOwner(p) {
		slots = s.owners
	}
	arrived := acquireSlot(slots.arriving)
	if arrived == nil {
		refuseClient(conn, exitTemporary, tooMany)
		return
	}
	defer arrived()
	s.answerClient(ctx, conn, p, slots, arrived)
}

// isOwner reports whether the peer is root or the daemon's own user.
func (s *commandServer) isOwner(p peer) bool { return p.uid == 0 || p.uid == s.uid }

func (s *commandServer) mayGiveCommands(p peer) bool {
	return s.isOwner(p) || slices.ContainsFunc(p.groups, func(g uint32) bool { return slices.Contains(s.groups, g) })
}
