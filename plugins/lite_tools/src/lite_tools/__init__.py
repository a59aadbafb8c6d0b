"""The command line of Lite, and what stands behind it: conversion, quantization, diagnostics and checks."""
