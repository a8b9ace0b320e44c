package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWarnings(t *testing.T) {
	var out strings.Builder
	log := newWarnings(&console{err: &out})
	log.Info("lease: claimed", "node", 7)
	assert.Empty(t, out.String())
	log.Warn("lease: lost", "node", 7, "holder", "the \x1b[31mother\n", "err", errors.New("no"))
	log.With("store", "x").WithGroup("g").Error("plain")
	assert.Equal(t, "tickflake: warning: lease: lost (node: 7; holder: the ?[31mother?; err: no)\ntickflake: warning: plain (store: x)\n", out.String())
}
