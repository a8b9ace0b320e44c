package monoclock

// AwaitWallBy is [AwaitWall] that asks another kernel.
var AwaitWallBy = awaitWall
