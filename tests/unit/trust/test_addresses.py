"""Addresses of this machine, its link and its cloud."""

from tests.each import each
from zcore.trust.addresses import is_near


@each(("address", "near"), [
    ("127.0.0.1", True), ("127.255.0.9", True), ("169.254.0.1", True), ("0.0.0.0", True), ("0.1.2.3", True),
    ("224.0.0.1", True), ("::", True), ("::1", True), ("fe80::1", True), ("fe80::1%lo", True),
    ("::ffff:127.0.0.1", True), ("::ffff:a9fe:a9fe", True), ("2002:7f00:1::", True), ("64:ff9b::7f00:1", True),
    ("::7f00:1", True), ("10.0.0.1", False), ("192.168.1.1", False), ("8.8.8.8", False), ("2606:4700::1", False),
    ("64:ff9b::808:808", False), ("fd00::1", False), ("fd00:ec2::254", True), ("fd20:ce::254", True),
    ("100.100.100.200", True), ("168.63.129.16", True), ("192.0.0.192", True), ("169.254.170.2", True),
    ("::ffff:100.100.100.200", True), ("64:ff9b::a83f:8110", True), ("64:ff9b:1::6464:64c8", True),
    ("2002:c000:c0::", True), ("100.100.100.201", False), ("192.0.0.1", False)])
def test_what_is_near(address, near):
    assert is_near(address) is near
