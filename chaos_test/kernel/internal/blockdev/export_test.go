package blockdev

const MaxCache = maxCache
