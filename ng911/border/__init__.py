# SPDX-License-Identifier: GPL-2.0-or-later
"""The web services of a border function of an emergency network (NENA-STA-010.3), on behalf of Kamailio.

events.py   SIP messages to log events
jws.py      signatures
sender.py   a bounded queue of events to the logging service
actors.py   sources that PSAPs have reported, and how Kamailio blocks them
door.py     bounded connections of PSAPs
main.py     options, start and stop"""
