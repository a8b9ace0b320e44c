package engine

var NextVersion = nextVersion
